import { csvLine } from '../../../base/values/csv-line.ts';
import { type CarriedPayment, sweepParts } from '../../use-cases/books/sweep-payments.ts';
import { openDatabaseSource } from '../../use-cases/books/source.ts';
import { decimalText, type Entry } from '../../../base/values/entry.ts';
import { ArgumentError, readOptions } from '../../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';
import { withLedger } from '../../../ledger/terminal/ledger.ts';
import { fail, say } from '../../../base/terminal/terminal.ts';
import { moneyCommands } from '../../terminal/money-descriptions.ts';

const header = ['quote_digest', 'payment_nonce', 'payer', 'transaction', 'block', 'amount', 'token'];

export async function run(args: readonly string[]): Promise<ExitCode> {
  const { values } = readOptions(moneyCommands['sweeps payments'], args);
  const { tx = '', log, csv } = values;
  if (!/^0x[0-9a-f]{64}$/.test(tx))
    throw new ArgumentError('--tx is the transaction of a sweep: 0x and 64 digits');
  if (log !== undefined && !/^\d{1,9}$/.test(log)) throw new ArgumentError('--log is the number of a log');
  const isOf = (name: string): boolean =>
    log === undefined ? name.startsWith(`${tx}:`) : name === `${tx}:${log}`;
  if (csv) process.stdout.write(csvLine(header));
  return withLedger(async ({ pool }) => {
    const sweeps: Entry[] = [];
    let [count, sum] = [0, 0n];
    for await (const part of sweepParts(await openDatabaseSource(pool), isOf)) {
      if (part.kind === 'sweep') sweeps.push(part.entry);
      else {
        count += part.atoms > 0n ? 1 : -1;
        sum += part.atoms;
        process.stdout.write(csv ? csvLine(fieldsOf(part)) : `${fieldsOf(part).join('  ')}\n`);
      }
    }
    const [sweep, another] = sweeps;
    const move = sweep?.moves[0];
    if (!sweep || !move || another) {
      fail(
        another
          ? 'the transaction has several sweeps: name one with --log'
          : 'no sweep of this transaction is recorded',
      );
      return exitCodes.notDone;
    }
    const { commodity, atoms } = move;
    const text = (amount: bigint): string => `${decimalText(amount, commodity.decimals)} ${commodity.symbol}`;
    if (!csv) say(`${count} payments of ${text(sum)}; the sweep moved ${text(atoms)}.`);
    return exitCodes.done;
  });
}

function fieldsOf({ entry, atoms }: CarriedPayment): string[] {
  const { payment, moves, quoteDigest = '', transaction = '', block = '' } = entry;
  const commodity = moves[0]?.commodity;
  const amount = decimalText(atoms, commodity?.decimals ?? 0);
  return [
    quoteDigest,
    payment?.nonce ?? '',
    payment?.payer ?? '',
    transaction,
    block,
    amount,
    commodity?.symbol ?? '',
  ];
}
