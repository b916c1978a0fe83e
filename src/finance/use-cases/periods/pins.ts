import { createHash } from 'node:crypto';
import { openBooks, type Books } from '../books/books.ts';
import { type LedgerSource, ExportError } from '../books/source.ts';
import { type ReportJson, reportText } from '../../rules/reconcile/report.ts';
import { canonicalJson, type CanonicalValue } from '../../../base/values/canonical-json.ts';
import type { Period } from '../../../base/values/period.ts';
import { rootAfter } from '../../../audit/use-cases/log/prove.ts';
import { TreeRoots } from '../../../audit/use-cases/log/tree-roots.ts';
import { type BookFormat, bookFormats } from '../../../base/values/format.ts';
import { readLastBefore } from '../../../ledger/store/export.ts';
import { writeBooks } from '../books/format.ts';

/** The SHA-256 of the export of a period in each format, as 0x and hex; no hash for a format that cannot hold its amounts. */
type ExportHashes = Readonly<Partial<Record<BookFormat, string>>>;

/** Writes every format of the books in one pass, and keeps only the hashes. */
export async function hashExports(books: Books): Promise<ExportHashes> {
  const readers = sharedParts(books.parts(), bookFormats.length);
  const hashes = await Promise.all(
    bookFormats.map(async (format, at) => {
      const parts = (): AsyncIterable<never> => readers[at] as AsyncIterable<never>;
      return [format, await hashOf({ ...books, parts }, format)] as const;
    }),
  );
  return Object.fromEntries(hashes.filter(([, hash]) => hash !== undefined));
}

async function hashOf(books: Books, format: BookFormat): Promise<string | undefined> {
  const hash = createHash('sha256');
  try {
    for await (const bytes of writeBooks(books, format)) hash.update(bytes);
  } catch (error) {
    if (error instanceof ExportError) return undefined;
    throw error;
  }
  return `0x${hash.digest('hex')}`;
}

/**
 * Readers of one sequence, each of which gets every item: the next item is read once all have asked for it. So several formats are
 * written in one pass, and memory does not grow. A reader that leaves early does not hold the others up.
 */
export function sharedParts<T>(source: AsyncIterable<T>, readers: number): AsyncIterable<T>[] {
  const items = source[Symbol.asyncIterator]();
  let present = readers;
  let waiting = 0;
  let turn = Promise.withResolvers<IteratorResult<T>>();
  const advance = (): void => {
    if (waiting === 0 || waiting < present) return;
    const { resolve, reject } = turn;
    waiting = 0;
    turn = Promise.withResolvers();
    items.next().then(resolve, reject);
  };
  const next = async (): Promise<IteratorResult<T>> => {
    waiting += 1;
    const { promise } = turn;
    advance();
    return promise;
  };
  async function* reader(): AsyncGenerator<T> {
    try {
      for (let read = await next(); !read.done; read = await next()) yield read.value;
    } finally {
      present -= 1;
      advance();
    }
  }
  return Array.from({ length: readers }, reader);
}

/** SHA-256 of a text or its bytes, as 0x and hex. */
export function hashOfText(text: string | Buffer): string {
  return `0x${createHash('sha256').update(text).digest('hex')}`;
}

/** SHA-256 of a report, as `reconcile --json` writes it. */
export function reportHash(report: ReportJson): string {
  return hashOfText(reportText(report));
}

/** SHA-256 of the part of a report about its period, without the head of the log that it read. */
export function outcomeHash(report: ReportJson): string {
  const { ledger, ...outcome } = report;
  return hashOfText(canonicalJson({ ...outcome, fault: ledger.fault } as unknown as CanonicalValue));
}

/** The exports of a period, by their hashes, and how many events they were made of. */
export async function pinExports(
  source: LedgerSource,
  period: Period,
): Promise<{ readonly events: number; readonly exports: ExportHashes }> {
  const books = await openBooks(source, period);
  return { events: books.events, exports: await hashExports(books) };
}

/**
 * The root over the first `size` events of a ledger, in base64; undefined if it has fewer. In a database the events from the beginning of
 * the period on are read, and of those before it the hashes of the log.
 */
export async function rootAt(
  source: LedgerSource,
  { fromMs }: Period,
  size: number,
): Promise<string | undefined> {
  if (source.pool) {
    const after = await readLastBefore(source.pool, fromMs);
    return (await rootAfter(source.pool, after, size))?.toString('base64');
  }
  const tree = new TreeRoots([size]);
  for await (const leaves of source.leaves()) {
    for (const leaf of leaves) if (tree.size < size) tree.append(leaf);
    if (tree.size === size) break;
  }
  return tree.at.get(size)?.toString('base64');
}
