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
import { findLastReconciliation } from '../../../audit/store/reconciliations.ts';
import { booksPath, booksView, moneyPath, words } from './books-view.ts';
import { amountIn, recordable } from './breaks.ts';
import { breaksIn, openBreaksOf, openItemsOf, readReport } from './stored-report.ts';

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
  const isNone = sweeps.length + transfers.length === 0;
  const recorded = new Set([...sweeps, ...transfers].map(({ data }) => data.transaction));
  const body = html`${await unmatchedNotice(visit, recorded)}
  ${includesRole(visit.operator.role, 'finance') && recordForm(visit, typed, mistake)}
  ${sweeps.length > 0 && tableSheet('Sweeps, the newest first', sweepColumns, sweeps)}
  ${transfers.length > 0 && tableSheet('Other transfers, the newest first', transferColumns, transfers)}
  ${isNone && empty('No sweep or other transfer is recorded', 'Those that finance records are listed here.')}
  ${Math.max(sweeps.length, transfers.length) === shownRows && html`<p class="hint">The newest ${shownRows} of each: the exports have them all.</p>`}`;
  return booksView(site, moneyPath, 'Sweeps and other transfers', body, { mistake });
}

/** Whether money moved that is recorded nowhere, as far as the last reconciliation knows. `recorded`: the newest transactions that are. */
async function unmatchedNotice({ site }: OperatorVisit, recorded: ReadonlySet<string>): Promise<Html> {
  const { pool } = site.ledger;
  const last = await findLastReconciliation(pool);
  const found = last && (await readReport(pool, last.id));
  if (!last || !found)
    return html`<p class="notice">
      No <a href="${booksPath}">reconciliation</a> was made, so it is not known whether a sweep or another
      transfer has to be recorded.
    </p>`;
  const report = html`<a href="${booksPath}/reconciliations/${last.id}">The last reconciliation</a>, up to
    ${time(new Date(last.to))},`;
  const all = await openBreaksOf(pool, found);
  const open = (await openItemsOf(pool, breaksIn(found))).filter(
    ({ name, item }) => recordable[name] && !recorded.has(item.transaction ?? ''),
  );
  const [first] = open;
  if (first && all === 1) {
    const { name, item } = first;
    return html`<p class="notice bad">
      ${amountIn(found, item, item.chain_amount)} ${name === 'foreign_use' ? 'left' : 'came in'} and is not
      recorded:
      <a href="${booksPath}/reconciliations/${last.id}/breaks/${item.break_id ?? ''}">record it</a>.
    </p>`;
  }
  if (first)
    return html`<p class="notice bad">
      ${report} found ${open.length === 1 ? '1 transfer that is' : `${open.length} transfers that are`} not
      recorded. Record each on the page of its break.
    </p>`;
  return all === 0
    ? html`<p class="notice good">${report} leaves no transfer to record.</p>`
    : html`<p class="notice warn">
        ${report} has ${all === 1 ? '1 break that is' : `${all} breaks that are`} not explained. Transfers
        recorded since then are matched by the next one.
      </p>`;
}

function recordForm(visit: OperatorVisit, typed: URLSearchParams | undefined, mistake?: string): Html {
  return html`<section class="sheet">
    <h2>Record a sweep, or another transfer</h2>
    ${moneyForm(visit, moneyPath, { kinds: moneyKinds, typed, mistake, any: 'choose' })}
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
