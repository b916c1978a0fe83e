import { tableSheet } from '../tables.ts';
import type { EventOf } from '../../../ledger/rules/event.ts';
import { includesRole } from '../../../base/values/operator-role.ts';
import { html, type Html } from '../../../base/values/html.ts';
import { tokenAmount } from '../../pages/jobs/token-amount.ts';
import { type Column, empty, shortId, time } from '../../pages/elements.ts';
import type { View } from '../../pages/visit.ts';
import { listSweeps, listTransfers } from '../../../payments/store/refunds.ts';
import type { Console, OperatorVisit } from '../visit.ts';
import { moneyAction, moneyForm, moneyKinds } from './record-money.ts';
import { booksView, moneyPath, words } from './books-view.ts';

type Sweep = EventOf<'operator_sweep_recorded'>;
type Transfer = EventOf<'operator_transfer_recorded' | 'operator_transfer_reversed'>;

const shownRows = 200;

/** Money moved outside payments: sweeps, and unexplained transfers to a payee. */
export function moneyPages(console: Console): void {
  console.show(moneyPath, (visit) => moneyView(visit, undefined, visit.query));
  moneyAction(console, { path: moneyPath, pageOf: () => moneyPath, show: moneyView });
}

async function moneyView(visit: OperatorVisit, mistake?: string, typed?: URLSearchParams): Promise<View> {
  const { site } = visit;
  const { pool } = site.ledger;
  const [sweeps, transfers] = [await listSweeps(pool, shownRows), await listTransfers(pool, shownRows)];
  const body = html`${
    sweeps.length === 0
      ? empty(
          'No sweep is recorded',
          'What left a payee for an account of yours is recorded here by finance.',
        )
      : tableSheet('Sweeps, the newest first', sweepColumns, sweeps)
  }
  ${
    transfers.length === 0
      ? empty(
          'No other transfer is recorded',
          'Money that came without a payment is recorded here by finance.',
        )
      : tableSheet('Unexplained transfers, the newest first', transferColumns, transfers)
  }
  ${Math.max(sweeps.length, transfers.length) === shownRows && html`<p class="hint">The newest ${shownRows} of each: the exports have them all.</p>`}
  ${includesRole(visit.operator.role, 'finance') && recordForm(visit, typed)}`;
  return booksView(site, moneyPath, 'Sweeps and other transfers', body, { mistake });
}

function recordForm(visit: OperatorVisit, typed: URLSearchParams | undefined): Html {
  return html`<section class="sheet">
    <h2>Record a sweep, or another transfer</h2>
    ${moneyForm(visit, moneyPath, { kinds: moneyKinds, typed })}
  </section>`;
}

const sweepColumns: Column<Sweep>[] = [
  { label: 'Recorded', cell: ({ at }) => time(new Date(at)) },
  { label: 'Amount', isNumber: true, cell: ({ data }) => tokenAmount(BigInt(data.amount), data) },
  { label: 'To', cell: ({ data }) => shortId(data.swept_to, 'the account it went to') },
  { label: 'Transaction', cell: ({ data }) => shortId(data.transaction, 'the transaction') },
  { label: 'By', cell: ({ data }) => data.operator },
];

const transferColumns: Column<Transfer>[] = [
  { label: 'Recorded', cell: ({ at }) => time(new Date(at)) },
  {
    label: 'As',
    cell: (event) =>
      event.type === 'operator_transfer_recorded' ? words(event.data.as) : `reversed: ${event.data.why}`,
  },
  {
    label: 'Amount',
    isNumber: true,
    cell: (event) =>
      event.type === 'operator_transfer_recorded' ? tokenAmount(BigInt(event.data.amount), event.data) : '',
  },
  { label: 'Transaction', cell: ({ data }) => shortId(data.transaction, 'the transaction') },
  { label: 'By', cell: ({ data }) => data.operator },
];
