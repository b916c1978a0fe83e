import { createHash } from 'node:crypto';
import { type BookFormat, bookFormats } from '../../../base/values/format.ts';
import type { Books } from './books.ts';
import { writeBooks } from './format.ts';
import { ExportError } from './source.ts';

/** The SHA-256 of the export of a period in each format, as 0x and hex; no hash for a format that cannot hold its amounts. */
export type ExportHashes = Readonly<Partial<Record<BookFormat, string>>>;

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
