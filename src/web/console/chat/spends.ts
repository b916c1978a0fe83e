import { html, type Html } from '../../../base/values/html.ts';
import type { ChatContext } from '../../../chat/use-cases/context.ts';
import { badge, type Column, shortId, table, time } from '../../pages/parts.ts';
import { listTroubledPayouts, type OpenPayout } from '../../../chat/store/payouts.ts';
import { readStream } from '../../../ledger/store/streams.ts';

const shownSpends = 50;

interface TroubledSpend extends OpenPayout {
  /** What was signed, in the token's smallest units; undefined where the ledger has no such event. */
  readonly amount: string | undefined;
  /** The account that signed it. */
  readonly commitment: string | undefined;
}

/** The earned spends whose claim on the contract has failed so far, or for good. */
export async function spendsSheet({ pool, spending }: ChatContext): Promise<Html | undefined> {
  if (!spending) return undefined;
  const spends = await Promise.all(
    (await listTroubledPayouts(pool, shownSpends)).map(async (payout): Promise<TroubledSpend> => {
      const { events } = await readStream(pool, payout.stream);
      const accepted = events.find((event) => event.type === 'spend_accepted');
      return { ...payout, amount: accepted?.data.amount, commitment: accepted?.data.commitment };
    }),
  );
  return html`<section class="sheet" data-rows>
    ${
      spends.length === 0
        ? html`<h2>Spends</h2>
            <p class="muted">Every earned spend is claimed, or will be on time.</p>`
        : table('Spends whose claim has failed, the oldest first', columns, spends)
    }
    ${spending.operatorBalance.isLow() && html`<p>${badge('little ether', 'bad')} The operator’s key can hardly land and claim spends.</p>`}
  </section>`;
}

const columns: Column<TroubledSpend>[] = [
  { label: 'Spend', cell: ({ stream }) => shortId(stream, 'the name of the spend') },
  {
    label: 'State',
    cell: ({ status }) =>
      badge(status === 'failed' ? 'lost' : 'tried again', status === 'failed' ? 'bad' : 'warn'),
  },
  { label: 'Reason', cell: ({ reason = '' }) => reason.replaceAll('_', ' ') },
  { label: 'Amount', isNumber: true, cell: ({ amount = '' }) => amount },
  {
    label: 'Account',
    cell: ({ commitment }) => (commitment === undefined ? '' : shortId(commitment, 'the account')),
  },
  { label: 'Attempts', isNumber: true, cell: ({ attempts }) => attempts },
  { label: 'Earned', cell: ({ since }) => time(since) },
];
