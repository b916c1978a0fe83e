import type pg from 'pg';
import { type LedgerSource, openDatabaseSource, openFileSource } from '../use-cases/books/source.ts';
import { parseInstant } from '../../base/values/period.ts';
import { ArgumentError } from '../../base/terminal/arguments.ts';
import { requireExport } from '../../audit/terminal/given-proof.ts';
import { withLedger } from '../../ledger/terminal/ledger.ts';
import type { source } from './options.ts';
import { readZone } from './period-choice.ts';

/** Where the books are read. */
export interface BooksSource {
  readonly source: LedgerSource;
  /** Undefined for an export. */
  readonly pool: pg.Pool | undefined;
}

type SourceValues = Readonly<Partial<Record<keyof typeof source, string | undefined>>>;

/** `--currency`. Throws an ArgumentError if it is not one. */
export function readCurrency({ currency }: SourceValues): string | undefined {
  if (currency === undefined || /^[A-Z]{3,8}$/.test(currency)) return currency;
  throw new ArgumentError('--currency is the currency of credit: 3 to 8 capitals, such as USD');
}

/** The ledger that `--input` or DATABASE_URL names. Throws an ArgumentError if it cannot be read. */
export async function withBooksSource<T>(
  { input, tz, 'exported-at': exportedAt }: SourceValues,
  use: (from: BooksSource) => Promise<T>,
): Promise<T> {
  const exportedAtMs = exportedAt === undefined ? -Infinity : parseInstant(exportedAt, readZone(tz));
  if (exportedAtMs === undefined || exportedAtMs > Date.now() || (exportedAt && input === undefined))
    throw new ArgumentError(
      '--exported-at is when the file of --input was exported: a date or time that has passed',
    );
  if (input === undefined)
    return withLedger(async ({ pool }) => use({ source: await openDatabaseSource(pool), pool }));
  await requireExport(input);
  return use({ source: openFileSource(input, Date.now(), exportedAtMs), pool: undefined });
}
