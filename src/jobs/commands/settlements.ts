import { listOpenSettlements } from '../../payments/use-cases/open-settlements.ts';
import { withLedger } from '../../ledger/terminal/ledger.ts';
import { quoteText } from '../../payments/terminal/quote-text.ts';
import { say } from '../../base/terminal/terminal.ts';
import { type ExitCode, exitCodes } from '../../base/terminal/exit-codes.ts';

const maxRows = 1_000;

export async function run(): Promise<ExitCode> {
  const rows = await withLedger((ledger) => listOpenSettlements(ledger, maxRows));
  if (rows.length === 0) say('No settlement is open.');
  for (const { digest, quoteSource, since, reason, payment, hints, isWithRunner } of rows) {
    const ageSecs = Math.max(0, Math.round((Date.now() - since.getTime()) / 1_000));
    const money = payment
      ? `${payment.amount} atoms of ${payment.symbol} on ${payment.network} from ${payment.payer}`
      : '';
    const where = isWithRunner ? '  (its call is with a runner)' : '';
    say(`${quoteText(digest, quoteSource)}  open for ${ageSecs} s  ${reason}${where}\n  ${money}`);
    if (payment) say(`  nonce ${payment.nonce}, valid until ${until(payment.valid_before)}`);
    for (const hint of hints) say(`  a facilitator returned transaction ${hint}`);
  }
  return exitCodes.done;
}

function until(validBefore: string): string {
  const ms = Number(validBefore) * 1_000;
  return ms <= 8.64e15 ? new Date(ms).toISOString() : 'any time';
}
