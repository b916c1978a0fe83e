import { createHash } from 'node:crypto';
import { type BookFormat, bookFormats } from '../../../base/values/format.ts';
import type { Books } from './books.ts';
import { writeBooks } from './format.ts';
import { sharedParts } from './shared-parts.ts';
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
