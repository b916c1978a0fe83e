import { refundReasonTexts } from '../../../domain/payments/refund.ts';
import { projectToHead } from '../../../projections/project.ts';
import { listRefundsDue, type RefundsDue } from '../../../refunds/list-refunds-due.ts';
import type { RefundDueRow } from '../../../store/refunds.ts';
import { readOptions } from '../../arguments.ts';
import { checkSealedOptions, databaseSealedOptions, refuseUnsealed } from '../../require-sealed.ts';
import { withLedger } from '../../ledger.ts';
import { quoteText } from '../../quote-text.ts';
import { moneyText } from '../../money-text.ts';
import { fail, say } from '../../terminal.ts';
import { type ExitCode, exitCodes } from '../../exit-codes.ts';

const pageSize = 1_000;

export async function run(args: readonly string[]): Promise<ExitCode> {
  const { values } = readOptions({ args: [...args], options: databaseSealedOptions });
  checkSealedOptions(values);
  return withLedger(async (ledger) => {
    await projectToHead(ledger);
    let [listed, asOfSeq] = [0, 0];
    const contradicted: number[] = [];
    for (let after: number | undefined = 0; after !== undefined;) {
      const page: RefundsDue = await listRefundsDue(ledger.pool, after, pageSize);
      for (const row of page.rows) show(row);
      listed += page.rows.length;
      asOfSeq = Math.max(asOfSeq, page.asOfSeq);
      contradicted.push(...page.contradicted);
      after = page.listed.length < pageSize ? undefined : page.listed.at(-1);
    }
    if (listed === 0) say('No refund is due.');
    if (contradicted.length === 0) return (await refuseUnsealed(values, ledger, asOfSeq)) ?? exitCodes.done;
    fail(
      `The read models say something else about the payments that events ${contradicted.join(', ')} started: somebody has changed ` +
        'them. The list above is what the events say. Pay nothing before `tollbook verify` is sound.',
    );
    return exitCodes.finding;
  });
}

function show(row: RefundDueRow): void {
  const { network, why } = row;
  say(
    `${quoteText(row.quote_digest, row.quote_source)}  due since ${row.since} (${row.age_secs} s)  ${refundReasonTexts[why] ?? why}\n` +
      `  ${moneyText(row)} on ${network} to ${row.payer}\n` +
      `  payment ${row.payment_nonce}, paid to ${row.pay_to} by ${row.transaction}`,
  );
  if (row.refunded_amount !== '0')
    say(
      `  refunded before: ${moneyText({ ...row, amount: row.refunded_amount })} of ${moneyText({ ...row, amount: row.paid_amount })}`,
    );
  if (row.block_number === null)
    say('  not proven on the chain yet: only the facilitator or an operator says that it was paid');
}
