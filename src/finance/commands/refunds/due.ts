import { ageText } from '../../../base/values/age-text.ts';
import { refundReasonTexts } from '../../../payments/rules/refund.ts';
import { projectToHead } from '../../../audit/use-cases/projections/project.ts';
import {
  findUnlistedRefunds,
  type ListedRefund,
  listRefundsDue,
  type RefundsDue,
} from '../../use-cases/refunds/list-refunds-due.ts';
import { listStartedRefunds } from '../../../payments/store/refunds.ts';
import { readOptions } from '../../../base/terminal/arguments.ts';
import {
  checkSealedOptions,
  readAttestedBy,
  readSince,
  refuseChanged,
  refuseUnsealed,
} from '../../terminal/require-sealed.ts';
import { withLedger } from '../../../ledger/terminal/ledger.ts';
import { quoteText } from '../../../payments/terminal/quote-text.ts';
import { askedLine } from '../../terminal/asked-line.ts';
import { moneyText } from '../../terminal/money-text.ts';
import { openWorth, readValuation, type WorthOf } from '../../terminal/worth.ts';
import { fail, say } from '../../../base/terminal/terminal.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';
import { moneyCommands } from '../../terminal/money-descriptions.ts';

const pageSize = 1_000;

export async function run(args: readonly string[]): Promise<ExitCode> {
  const { values } = readOptions(moneyCommands['refunds due'], args);
  checkSealedOptions(values);
  const attestedBy = await readAttestedBy(values);
  const valuation = await readValuation(values);
  return withLedger(async (ledger) => {
    const worth = await openWorth(ledger.pool, valuation);
    await projectToHead(ledger);
    const since = await readSince(attestedBy, ledger.pool);
    const refusal = await refuseChanged(values, ledger.pool, since);
    if (refusal !== undefined) return refusal;
    let [listed, sealedSeq] = [0, -1];
    const [contradicted, changed]: [number[], number[]] = [[], []];
    const quotes = new Set<string>();
    for (let after: number | undefined = 0; after !== undefined;) {
      const page: RefundsDue = await listRefundsDue(ledger.pool, after, pageSize);
      // nothing is listed that may be paid before it is sealed
      const unsealed =
        page.asOfSeq > sealedSeq
          ? await refuseUnsealed(values, { pool: ledger.pool, since }, page.asOfSeq)
          : undefined;
      if (unsealed !== undefined) return unsealed;
      sealedSeq = Math.max(sealedSeq, page.asOfSeq);
      for (const row of page.rows) {
        quotes.add(row.quote_digest);
        show(row, worth);
      }
      listed += page.listed.length;
      contradicted.push(...page.contradicted);
      changed.push(...page.changed);
      after = page.listed.length < pageSize ? undefined : page.listed.at(-1);
    }
    // a row of the list says so itself if it is wrong in another way
    const known = new Set(contradicted);
    contradicted.push(...(await findUnlistedRefunds(ledger.pool, since)).filter((seq) => !known.has(seq)));
    const takenBack = (await listStartedRefunds(ledger.pool)).filter((quote) => !quotes.has(quote));
    for (const quote of takenBack)
      say(
        `quote ${quote}: its refund is being sent, although its payment does not stand on the chain any more. Stop it if you can: ` +
          '`tollbook refunds abandon`; what was sent is recorded once it is final',
      );
    if (listed + contradicted.length + takenBack.length === 0) say('No refund is due.');
    if (changed.length > 0)
      fail(
        `The events ${changed.join(', ')} are not those that the log has sealed: somebody has changed them. Their payments are not ` +
          'listed. Pay nothing before `tollbook verify` is sound.',
      );
    if (contradicted.length > 0)
      fail(
        `The read models say something else about the payments that events ${contradicted.join(', ')} started: somebody has changed ` +
          'them. What is listed is what the events say. Pay nothing before `tollbook verify` is sound.',
      );
    return changed.length + contradicted.length > 0 ? exitCodes.finding : exitCodes.done;
  });
}

function show(row: ListedRefund, worth: WorthOf): void {
  const { network, why } = row;
  const today = new Date().toISOString().slice(0, 10);
  say(
    `${quoteText(row.quote_digest, row.quote_source)}  due since ${row.since} (${ageText(row.age_secs)})  ${refundReasonTexts[why] ?? why}\n` +
      `  ${moneyText(row, worth(row, today))} on ${network} to ${row.payer}\n` +
      `  payment ${row.payment_nonce}, paid to ${row.pay_to} by ${row.transaction}`,
  );
  if (row.refunded_amount !== '0')
    say(
      `  refunded before: ${moneyText({ ...row, amount: row.refunded_amount })} of ${moneyText({ ...row, amount: row.paid_amount })}`,
    );
  if (row.block_number === null)
    say('  not proven on the chain yet: only the facilitator or an operator says that it was paid');
  if (row.requested) say(askedLine(row.requested));
  const started = row.under_way;
  if (started) {
    const { since, age_secs: ageSecs, operator, sender, sender_nonce: nonce, transaction } = started;
    const from = sender === null ? '' : ` from ${sender}${nonce === null ? '' : `, nonce ${nonce}`}`;
    const by = transaction === null ? '' : ` by ${transaction}`;
    say(
      `  being sent since ${since} (${ageText(ageSecs)}) by ${operator}${from}${by}: its call is not delivered meanwhile`,
    );
  }
}
