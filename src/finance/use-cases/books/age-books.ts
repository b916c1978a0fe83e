import type pg from 'pg';
import {
  type AgedItem,
  agedKinds,
  listed,
  type AgedKind,
  OpenItems,
  orderItems,
} from '../../../audit/rules/bookkeeping/aging.ts';
import type { Commodity } from '../../../base/values/entry.ts';
import { openItemOf } from '../../../audit/use-cases/projections/open-item-model.ts';
import { readCommodities } from '../../../audit/use-cases/projections/book-model.ts';
import { readLastBefore } from '../../../ledger/store/export.ts';
import { readAccountNames, readItemsAt } from '../../../ledger/store/open-items.ts';
import { withStoredRows } from '../../../ledger/store/stored-rows.ts';
import type { BooksOptions } from './books.ts';
import { foldBooks } from './folded-books.ts';
import { creditCurrency } from './kept-books.ts';
import { ExportError, type LedgerSource } from './source.ts';

const dayMs = 86_400_000;

/** Items are put together by their age: at most this many whole days; a last bucket takes the others. */
const bucketDays = [7, 30, 60, 90] as const;

/** The names of the buckets, such as `8-30`. */
export const bucketNames: readonly string[] = [
  ...bucketDays.map((days, i) => `${i === 0 ? 0 : (bucketDays[i - 1] ?? 0) + 1}-${days}`),
  `over ${bucketDays.at(-1)}`,
];

/** An open item with its age at the date of the aging. */
export interface AgedRow extends AgedItem {
  readonly ageDays: number;
  readonly bucket: string;
}

/** What is open of one kind in one commodity. The sum is the balance of its accounts in the journals. */
export interface AgedTotal {
  readonly kind: AgedKind;
  readonly commodity: Commodity;
  readonly count: number;
  /** Atoms, by {@link bucketNames}. */
  readonly buckets: ReadonlyMap<string, bigint>;
  readonly total: bigint;
}

export interface Aging {
  readonly asOfMs: number;
  /** How many events it was made of: the first ones of the ledger. */
  readonly events: number;
  readonly totals: readonly AgedTotal[];
  /** By kind and commodity, then the oldest first. */
  readonly rows: readonly AgedRow[];
}

/**
 * The items open at a moment, by the time of recording: settlements without an outcome, and the items of the balances. It is
 * made of the entries that journals have, so both say the same. Of an export, which is read from its first event.
 * @throws ExportError as {@link foldBooks} does
 * @throws BooksError if an event contradicts those before it
 */
export async function ageExport(
  source: LedgerSource,
  asOfMs: number,
  { currency }: Pick<BooksOptions, 'currency'> = {},
): Promise<Aging> {
  const books = await foldBooks(source, { fromMs: 0, toMs: asOfMs }, currency);
  const open = new OpenItems();
  for await (const part of books.keep()) if (part.kind === 'entry') open.post(part.entry);
  return agingOf([...books.openSettlements(), ...open.list()], asOfMs, books.events);
}

/**
 * The same of the ledger in a database, from its read models: they must have reached the moment. The time that it takes follows what is
 * open, and what was closed since.
 * @throws ExportError if the read models have no open items yet, or the ledger says another currency of credit
 */
export async function ageLedger(
  pool: pg.Pool,
  asOfMs: number,
  { currency: given }: Pick<BooksOptions, 'currency'> = {},
): Promise<Aging> {
  return withStoredRows(pool, async (snapshot) => {
    if (!snapshot.hasPostings)
      throw new ExportError(
        'the read models of this ledger have no open items yet: start a gateway, or run `tollbook projections rebuild`',
      );
    const { client, generation } = snapshot;
    const seq = await readLastBefore(client, asOfMs);
    const { commodities, currency } = await readCommodities(client, generation, given);
    creditCurrency(currency, given);
    const names = await readAccountNames(client, generation);
    const items = (await readItemsAt(snapshot, seq)).flatMap((row) =>
      listed({ ...openItemOf(row, commodities), accountName: names.get(row.name) }),
    );
    return agingOf(items, asOfMs, seq);
  });
}

function agingOf(items: readonly AgedItem[], asOfMs: number, events: number): Aging {
  const rows = orderItems(items).map((item) => rowOf(item, asOfMs));
  return { asOfMs, events, rows, totals: totalsOf(rows) };
}

function rowOf(item: AgedItem, asOfMs: number): AgedRow {
  const ageDays = Math.max(0, Math.floor((asOfMs - Date.parse(item.since)) / dayMs));
  const place = bucketDays.findIndex((days) => ageDays <= days);
  return { ...item, ageDays, bucket: bucketNames.at(place) ?? '' };
}

function totalsOf(rows: readonly AgedRow[]): AgedTotal[] {
  return agedKinds.flatMap((kind) => {
    const ofKind = Map.groupBy(
      rows.filter((row) => row.kind === kind),
      ({ commodity }) => commodity,
    );
    return [...ofKind].map(([commodity, group]) => {
      const buckets = new Map(bucketNames.map((name) => [name, 0n]));
      for (const { bucket, atoms } of group) buckets.set(bucket, (buckets.get(bucket) ?? 0n) + atoms);
      const total = group.reduce((sum, { atoms }) => sum + atoms, 0n);
      return { kind, commodity, count: group.length, buckets, total };
    });
  });
}
