import { projectToHead } from '../../../projections/project.ts';
import { listRefundsDue, type RefundDueRow } from '../../../store/refunds.ts';
import { withLedger } from '../../ledger.ts';
import { quoteText } from '../../quote-text.ts';
import { moneyText } from '../../money-text.ts';
import { say } from '../../terminal.ts';

const pageSize = 1_000;

const reasons: Readonly<Record<string, string>> = {
  dead_lettered: 'its call is a dead letter',
  never_enqueued: 'it never had a call',
  paid_twice: 'another payment took its quote',
  recovered: 'the ledger had lost it, and the chain shows it',
};

export async function run(): Promise<number> {
  const count = await withLedger(async (ledger) => {
    await projectToHead(ledger);
    let listed = 0;
    for (let after = 0; ;) {
      const { rows } = await listRefundsDue(ledger.pool, after, pageSize);
      for (const row of rows) show(row);
      listed += rows.length;
      const last = rows.at(-1);
      if (!last || rows.length < pageSize) return listed;
      after = last.seq;
    }
  });
  if (count === 0) say('No refund is due.');
  return 0;
}

function show(row: RefundDueRow): void {
  const { network, why } = row;
  say(
    `${quoteText(row.quote_digest, row.quote_source)}  due since ${row.since} (${row.age_secs} s)  ${reasons[why] ?? why}\n` +
      `  ${moneyText(row)} on ${network} to ${row.payer}\n` +
      `  payment ${row.payment_nonce}, paid to ${row.pay_to} by ${row.transaction}`,
  );
  if (row.block_number === null)
    say('  not proven on the chain yet: only the facilitator or an operator says that it was paid');
}
