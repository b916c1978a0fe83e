import { createWriteStream } from 'node:fs';
import { access, constants, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { parseArgs } from 'node:util';
import { openBooks } from '../../books/books.ts';
import { writeBooks } from '../../books/format.ts';
import { ExportError, type LedgerSource, openDatabaseSource, openFileSource } from '../../books/source.ts';
import { exportLines } from '../../books/export-leaves.ts';
import { type BookFormat, bookFormats, isBookFormat } from '../../domain/bookkeeping/format.ts';
import { BooksError } from '../../domain/bookkeeping/books-error.ts';
import { parseInstant, parsePeriod, type Period } from '../../domain/values/period.ts';
import { ArgumentError, exitCodes } from '../arguments.ts';
import { withLedger } from '../ledger.ts';
import { fail } from '../terminal.ts';

const options = {
  format: { type: 'string', default: 'jsonl' },
  'from-seq': { type: 'string' },
  from: { type: 'string' },
  to: { type: 'string' },
  input: { type: 'string' },
  'exported-at': { type: 'string' },
  out: { type: 'string' },
} as const;

type Values = ReturnType<typeof parseArgs<{ options: typeof options }>>['values'];

export async function run(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({ args: [...args], options });
  try {
    if (values.format === 'jsonl') await exportLedger(values);
    else if (isBookFormat(values.format)) await exportBooks(values, values.format);
    else throw new ArgumentError(`unknown format: --format is jsonl, ${bookFormats.join(', ')}`);
    return 0;
  } catch (error) {
    if (!(error instanceof ExportError) && !(error instanceof BooksError)) throw error;
    fail(error.message);
    return exitCodes.refused;
  }
}

async function exportLedger({ 'from-seq': from = '1', out, ...rest }: Values): Promise<void> {
  const ofBooks = (['from', 'to', 'input', 'exported-at'] as const).find((name) => rest[name] !== undefined);
  if (ofBooks !== undefined)
    throw new ArgumentError(`--${ofBooks} is for the books of a period: --format ${bookFormats.join(', ')}`);
  if (!/^[1-9]\d{0,14}$/.test(from))
    throw new ArgumentError('--from-seq is the number of the first event, from 1');
  await withLedger(async ({ pool }) => {
    const lines = readable(exportLines(pool, Number(from)));
    if (out === undefined) await pipeline(lines, process.stdout, { end: false });
    else await pipeline(lines, createWriteStream(out, { flags: from === '1' ? 'w' : 'a' }));
  });
}

async function exportBooks(values: Values, format: BookFormat): Promise<void> {
  const { input, from, to, 'exported-at': exportedAt } = values;
  // mistakes that need no clock are reported before the database is opened
  takePeriod(from, to, Infinity);
  if (values['from-seq'] !== undefined)
    throw new ArgumentError(
      '--from-seq is for --format jsonl: the books of a period are named by --from and --to',
    );
  const exportedAtMs = exportedAt === undefined ? -Infinity : parseInstant(exportedAt);
  if (exportedAtMs === undefined || exportedAtMs > Date.now() || (exportedAt && input === undefined))
    throw new ArgumentError(
      '--exported-at is when the file of --input was exported: a date or time that has passed',
    );
  if (input === undefined)
    return withLedger(async ({ pool }) => writePeriod(await openDatabaseSource(pool), values, format));
  await access(input).catch(() => {
    throw new ArgumentError(`--input ${input} cannot be read`);
  });
  await writePeriod(openFileSource(input, Date.now(), exportedAtMs), values, format);
}

async function writePeriod(
  source: LedgerSource,
  { from, to, out }: Values,
  format: BookFormat,
): Promise<void> {
  const books = await openBooks(source, takePeriod(from, to, source.nowMs));
  const bytes = readable(writeBooks(books, format));
  if (out === undefined) return pipeline(bytes, process.stdout, { end: false });
  await access(path.dirname(out), constants.W_OK).catch(() => {
    throw new ArgumentError(`--out ${out} cannot be written: its folder does not exist or is not writable`);
  });
  // what is there under its name is whole
  const partial = `${out}.partial`;
  try {
    await pipeline(bytes, createWriteStream(partial));
    await rename(partial, out);
  } finally {
    await rm(partial, { force: true });
  }
}

function takePeriod(from: string | undefined, to: string | undefined, nowMs: number): Period {
  const reading = parsePeriod(from, to, nowMs);
  if (reading.kind === 'refusal') throw new ArgumentError(reading.refusal.message);
  return reading.period;
}

function readable(bytes: AsyncIterable<Buffer>): Readable {
  return Readable.from(bytes, { objectMode: true, highWaterMark: 1 });
}
