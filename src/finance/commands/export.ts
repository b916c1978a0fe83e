import { createHash, type Hash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { access, constants, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type BooksOptions, openBooks } from '../use-cases/books/books.ts';
import type { Accounting } from '../../base/values/accounting.ts';
import { writeBooks } from '../use-cases/books/format.ts';
import { writeImport } from '../use-cases/books/import/write-import.ts';
import { notingMissing } from '../use-cases/books/missing-values.ts';
import { exportLines } from '../use-cases/books/export-leaves.ts';
import {
  type BookFormat,
  bookFormats,
  type ImportFormat,
  importFormats,
  isBookFormat,
  isImportFormat,
} from '../../base/values/format.ts';
import { parseInstant, type Period } from '../../base/values/period.ts';
import { utc } from '../../base/values/time-zone.ts';
import type { ClosedPeriod } from '../rules/periods/periods.ts';
import { compareExport, type Comparison } from '../use-cases/periods/compare-period.ts';
import { findPeriods, readPeriods } from '../use-cases/periods/read-periods.ts';
import { ArgumentError, readOptions, requireWritable } from '../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../base/terminal/exit-codes.ts';
import { withLedger } from '../../ledger/terminal/ledger.ts';
import { type BooksSource, readCurrency, withBooksSource } from '../terminal/books-source.ts';
import { readStatedValues } from '../terminal/stated-values.ts';
import { takePeriod } from '../terminal/period-choice.ts';
import { besideClose } from '../terminal/period-text.ts';
import { checkSealedOptions, refuseUnsealed } from '../terminal/require-sealed.ts';
import { readExportEnd } from '../../ledger/store/export.ts';
import { fail, print } from '../../base/terminal/terminal.ts';
import { bookCommands } from '../terminal/book-descriptions.ts';
import type { ValuesOf } from '../../base/terminal/command.ts';

type Values = ValuesOf<(typeof bookCommands)['export']>;

export async function run(args: readonly string[]): Promise<ExitCode> {
  const { values } = readOptions(bookCommands.export, args);
  checkSealedOptions(values);
  if (values.out !== undefined) await requireWritable('out', values.out);
  if (isBookFormat(values.format) || isImportFormat(values.format)) return exportBooks(values, values.format);
  if (values.format !== 'jsonl')
    throw new ArgumentError(
      `unknown format: --format is jsonl, ${[...bookFormats, ...importFormats].join(', ')}`,
    );
  return exportLedger(values);
}

async function exportLedger({ 'from-seq': from = '1', out, ...rest }: Values): Promise<ExitCode> {
  const ofBooks = (
    [
      'from',
      'to',
      'tz',
      'year-from',
      'input',
      'exported-at',
      'rates',
      'value-in',
      'currency',
      'accounts',
    ] as const
  ).find((name) => rest[name] !== undefined);
  if (ofBooks !== undefined)
    throw new ArgumentError(
      `--${ofBooks} is for the books of a period: --format ${[...bookFormats, ...importFormats].join(', ')}`,
    );
  if (!/^[1-9]\d{0,14}$/.test(from))
    throw new ArgumentError('--from-seq is the number of the first event, from 1');
  return withLedger(async ({ pool }) => {
    const end = await readExportEnd(pool);
    const unsealed = await refuseUnsealed(rest, { pool }, end.last);
    if (unsealed !== undefined) return unsealed;
    const lines = readable(exportLines(pool, Number(from), end));
    if (out === undefined) await print(lines);
    else await pipeline(lines, createWriteStream(out, { flags: from === '1' ? 'w' : 'a' }));
    return exitCodes.done;
  });
}

async function exportBooks(values: Values, format: BookFormat | ImportFormat): Promise<ExitCode> {
  // mistakes that need no clock are reported before the database is opened
  readYear(values, takePeriod(values, Infinity), format);
  const stated = await readStated(values);
  if (values['from-seq'] !== undefined)
    throw new ArgumentError(
      '--from-seq is for --format jsonl: the books of a period are named by --from and --to',
    );
  return withBooksSource(values, (ledger) => writePeriod(ledger, values, stated, format));
}

/** Values from the caller that the ledger does not hold. */
async function readStated(values: Values): Promise<Stated> {
  const { 'value-in': valueIn } = values;
  const currency = readCurrency(values);
  const { rates: given, accounting } = await readStatedValues(values);
  // a journal of the year closes no conversions
  const rates = values['no-opening'] && values.rates === undefined ? undefined : given;
  if (valueIn !== undefined && !rates) throw new ArgumentError('--value-in goes with --rates');
  const { accountMap, tax } = accounting ?? {};
  return { accounting, options: { rates, valueIn, currency, accountMap, tax } };
}

interface Stated {
  readonly accounting: Accounting | undefined;
  readonly options: BooksOptions;
}

/** It is a finding where the period is closed, and the export is not that of the close. */
async function writePeriod(
  ledger: BooksSource,
  values: Values,
  { accounting, options }: Stated,
  format: BookFormat | ImportFormat,
): Promise<ExitCode> {
  const { source, pool } = ledger;
  const period = takePeriod(values, source.nowMs);
  const hash = createHash('sha256');
  const year = readYear(values, period, format);
  const { books, missing } = notingMissing(
    await openBooks(source, year?.period ?? period, {
      ...options,
      // an accounting program keeps one currency
      ...(isImportFormat(format) && { valueIn: accounting?.importTerms?.currency }),
      continuedAtMs: year?.continuedAtMs,
    }),
  );
  const unsealed = await refuseUnsealed(values, ledger, books.events);
  if (unsealed !== undefined) return unsealed;
  const bytes = isImportFormat(format)
    ? writeImport(books, format, requireAccounting(accounting, format))
    : writeBooks(books, format);
  if (!(await writeTo(values.out, hashed(bytes, hash)))) return exitCodes.done;
  for (const sentence of missing()) fail(sentence);
  // a close pins neither a journal without an opening, nor values that the caller adds to the ledger's
  const { rates, currency, accountMap } = options;
  if (year || isImportFormat(format) || rates || currency !== undefined || accountMap) return exitCodes.done;
  const periods = pool ? (await readPeriods(pool)).periods : await findPeriods(source);
  const closed = periods.find(period);
  const comparison = closed && compareWithZone(closed, period, format, `0x${hash.digest('hex')}`);
  if (!closed || !comparison) return exitCodes.done;
  if (comparison.result !== 'same') fail(besideClose(closed, comparison));
  return comparison.result === 'differs' ? exitCodes.finding : exitCodes.done;
}

function requireAccounting(accounting: Accounting | undefined, format: ImportFormat): Accounting {
  if (accounting) return accounting;
  throw new ArgumentError(
    `--format ${format} needs --accounts: a file that names your accounts, such as examples/accounting/${format}.toml`,
  );
}

/**
 * `--no-opening`: the books from the beginning of the year on, of which the journal shows the period. Undefined without it, and for the
 * first journal of a year, which has the opening.
 * @throws ArgumentError if the journals of the year do not fit together
 */
function readYear(
  values: Values,
  period: Period,
  format: BookFormat | ImportFormat,
): { readonly period: Period; readonly continuedAtMs: number } | undefined {
  const { 'no-opening': isContinued, 'year-from': from } = values;
  if (!isContinued && from === undefined) return undefined;
  if (!isContinued) throw new ArgumentError('--year-from goes with --no-opening');
  if (format !== 'hledger' && format !== 'beancount')
    throw new ArgumentError('--no-opening is for journals: --format hledger or beancount');
  if (values.rates !== undefined)
    throw new ArgumentError(
      '--rates closes the conversions of a whole period: export the year as one, such as --from 2026-01 --to 2027-01',
    );
  const { zone = utc, fromMs } = period;
  if (zone.startOf(zone.dayOf(fromMs)) !== fromMs)
    throw new ArgumentError('a journal that continues another begins at the beginning of a day');
  const yearMs = parseInstant(from ?? `${zone.dayOf(fromMs).slice(0, 4)}-01`, zone);
  if (yearMs === undefined || yearMs > fromMs)
    throw new ArgumentError(
      '--year-from is when the first journal begins, such as 2026-04, and not after --from',
    );
  return yearMs === fromMs ? undefined : { period: { ...period, fromMs: yearMs }, continuedAtMs: fromMs };
}

/** Days belong to a zone: an export by the days of another one has other bytes. */
function compareWithZone(
  closed: ClosedPeriod,
  { zone = utc }: Period,
  format: BookFormat,
  sha256: string,
): Comparison | undefined {
  const { time_zone: name } = closed.close.data;
  return name === zone.name
    ? compareExport(closed, format, sha256)
    : {
        of: format,
        result: 'not_compared',
        words: `its days are those of ${name}: export with --tz ${name}`,
      };
}

async function* hashed(bytes: AsyncIterable<Buffer>, hash: Hash): AsyncGenerator<Buffer> {
  for await (const chunk of bytes) {
    hash.update(chunk);
    yield chunk;
  }
}

/** False if the reader of standard output has left before the end. */
async function writeTo(out: string | undefined, bytes: AsyncIterable<Buffer>): Promise<boolean> {
  if (out === undefined) return print(readable(bytes));
  await access(path.dirname(out), constants.W_OK).catch(() => {
    throw new ArgumentError(`--out ${out} cannot be written: its folder does not exist or is not writable`);
  });
  // what is there under its name is whole
  const partial = `${out}.partial`;
  try {
    await pipeline(readable(bytes), createWriteStream(partial));
    await rename(partial, out);
    return true;
  } finally {
    await rm(partial, { force: true });
  }
}

function readable(bytes: AsyncIterable<Buffer>): Readable {
  return Readable.from(bytes, { objectMode: true, highWaterMark: 1 });
}
