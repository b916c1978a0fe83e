import { projectToHead } from '../../audit/use-cases/projections/project.ts';
import { openDatabase } from '../../ledger/store/database.ts';
import { ageExport, ageLedger } from '../use-cases/books/age-books.ts';
import { agingFormats } from '../../base/values/format.ts';
import { isAgingFormat, agingText } from '../use-cases/books/aging-text.ts';
import { instantText, parseInstant } from '../../base/values/period.ts';
import { ArgumentError, readOptions } from '../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../base/terminal/exit-codes.ts';
import { readCurrency, withBooksSource } from '../terminal/books-source.ts';
import { readZone } from '../terminal/period-choice.ts';
import { readValuation } from '../terminal/worth.ts';
import { checkSealedOptions, refuseUnsealed } from '../terminal/require-sealed.ts';
import { bookCommands } from '../terminal/book-descriptions.ts';

export async function run(args: readonly string[]): Promise<ExitCode> {
  const { values } = readOptions(bookCommands.aging, args);
  checkSealedOptions(values);
  const { format, input, 'as-of': asOf } = values;
  if (!isAgingFormat(format)) throw new ArgumentError(`--format is ${agingFormats.join(', ')}`);
  if (asOf === undefined && input !== undefined) throw new ArgumentError('--input needs --as-of');
  const zone = readZone(values.tz);
  const asOfMs = asOf === undefined ? undefined : parseInstant(asOf, zone);
  if (asOf !== undefined && asOfMs === undefined)
    throw new ArgumentError('--as-of is a date or time: 2026-11, 2026-11-01 or 2026-11-01T08:00:00Z');
  const currency = readCurrency(values);
  const valuation = await readValuation(values);
  return withBooksSource(values, async (ledger) => {
    const { source, pool } = ledger;
    const { nowMs } = source;
    if (asOfMs !== undefined && asOfMs > nowMs)
      throw new ArgumentError(`--as-of is in the future: now it is ${instantText(nowMs)}`);
    const atMs = asOfMs ?? nowMs;
    if (pool) await projectToHead({ pool, db: openDatabase(pool) });
    const aging = await (pool ? ageLedger(pool, atMs, { currency }) : ageExport(source, atMs, { currency }));
    const unsealed = await refuseUnsealed(values, ledger, aging.events);
    if (unsealed !== undefined) return unsealed;
    for (const text of agingText(aging, format, valuation)) process.stdout.write(text);
    return exitCodes.done;
  });
}
