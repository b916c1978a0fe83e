import { decimalText } from '../../base/values/entry.ts';
import { type ExitCode, exitCodes } from '../../base/terminal/exit-codes.ts';
import { say } from '../../base/terminal/terminal.ts';
import type { Ledger } from '../../ledger/store/ledger.ts';
import { readStream } from '../../ledger/store/streams.ts';
import { withLedger } from '../../ledger/terminal/ledger.ts';
import { foldQuote, type PaymentState, type QuoteState } from '../../payments/rules/quote-state.ts';
import { listUnresolved } from '../../payments/store/follow-ups.ts';
import { listUnsettled } from '../../payments/store/unsettled.ts';
import { quoteText } from '../../payments/terminal/quote-text.ts';
import { findByKey, findTakenBack } from '../../payments/use-cases/resolve-settlement.ts';

const maxRows = 1_000;

/** A settlement without an outcome. A runner has the call of one whose payment was taken back: only its money is open. */
interface OpenSettlement {
  readonly digest: string;
  readonly since: Date;
  readonly quote: QuoteState;
  readonly known: PaymentState | undefined;
}

export async function run(): Promise<ExitCode> {
  const rows = await withLedger(listOpenSettlements);
  if (rows.length === 0) say('No settlement is open.');
  for (const { digest, since, quote, known } of rows) {
    const { payment, hints = [] } = known ?? {};
    const ageSecs = Math.max(0, Math.round((Date.now() - since.getTime()) / 1_000));
    const reason = known?.reason ?? known?.status ?? 'not_in_the_ledger';
    const money = payment
      ? `${decimalText(BigInt(payment.amount), payment.decimals)} ${payment.symbol} on ${payment.network} from ${payment.payer}`
      : '';
    const where = known?.call ? '  (its call is with a runner)' : '';
    say(`${quoteText(digest, quote.quote?.source)}  open for ${ageSecs} s  ${reason}${where}\n  ${money}`);
    if (payment) say(`  nonce ${payment.nonce}, valid until ${until(payment.valid_before)}`);
    for (const hint of hints) say(`  a facilitator returned transaction ${hint}`);
  }
  return exitCodes.done;
}

/** The oldest first. */
async function listOpenSettlements({ pool, db }: Ledger): Promise<OpenSettlement[]> {
  const [calls, kept] = await Promise.all([listUnsettled(db, maxRows), listUnresolved(db, maxRows)]);
  const waiting = calls.map(async ({ stream, payment, created_at: since }) => {
    const quote = foldQuote((await readStream(pool, stream)).events);
    const known = findByKey(quote, payment);
    // a call that a runner had is listed below
    return known?.call ? [] : { digest: stream, since, quote, known };
  });
  const withRunners = kept.map(async ({ stream, seq, created_at: since }) => ({
    digest: stream,
    since,
    ...(await findTakenBack({ pool }, stream, seq)),
  }));
  const rows = await Promise.all([...waiting, ...withRunners]);
  return rows.flat().toSorted((a, b) => a.since.getTime() - b.since.getTime());
}

function until(validBefore: string): string {
  const ms = Number(validBefore) * 1_000;
  return ms <= 8.64e15 ? new Date(ms).toISOString() : 'any time';
}
