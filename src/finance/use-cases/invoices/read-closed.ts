import type pg from 'pg';
import type { Entry } from '../../../base/values/entry.ts';
import type { ClosedPeriod } from '../../rules/periods/periods.ts';
import { openBooks } from '../books/books.ts';
import { openDatabaseSource } from '../books/source.ts';
import { rootAt } from '../periods/pins.ts';

/** The entries of a closed period, of a ledger that is the one that was closed. */
export interface ClosedEntries {
  readonly kind: 'entries';
  /** The events before the end of the period. */
  readonly events: number;
  entries(): AsyncIterable<Entry>;
}

/**
 * Reads the entries of a closed period. `not_as_closed` if the events from its beginning to the head of the close are not those that were
 * closed.
 * @param currency that of credit, for a ledger that does not say it
 * @throws ExportError if the ledger is incomplete
 */
export async function readClosedEntries(
  pool: pg.Pool,
  { period, close }: ClosedPeriod,
  currency: string | undefined,
): Promise<ClosedEntries | { readonly kind: 'not_as_closed' }> {
  const source = await openDatabaseSource(pool);
  const { size, root } = close.data.head;
  if ((await rootAt(source, period, size)) !== root) return { kind: 'not_as_closed' };
  const books = await openBooks(source, period, { currency });
  return {
    kind: 'entries',
    events: books.events,
    async *entries() {
      for await (const part of books.parts()) if (part.kind === 'entry') yield part.entry;
    },
  };
}
