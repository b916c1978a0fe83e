import type { BookFormat } from '../../../base/values/format.ts';
import { beancount } from './beancount.ts';
import type { Books } from './books.ts';
import { hledger } from './hledger.ts';
import { journalOf } from './journal.ts';
import { parquetOf } from './parquet.ts';
import { summaryCsv, summaryPage } from './summary.ts';
import { csvLine } from '../../../base/values/csv-line.ts';
import { columnsOf, rowsOf } from './rows.ts';

const chunkLetters = 64 * 1_024;

/** The bytes of a file, in chunks. The same books always give the same bytes. */
export async function* writeBooks(books: Books, format: BookFormat): AsyncGenerator<Buffer> {
  if (format === 'parquet') return yield* parquetOf(books);
  let chunk = '';
  for await (const text of textOf(books, format)) {
    chunk += text;
    if (chunk.length < chunkLetters) continue;
    yield Buffer.from(chunk);
    chunk = '';
  }
  if (chunk !== '') yield Buffer.from(chunk);
}

function textOf(books: Books, format: Exclude<BookFormat, 'parquet'>): AsyncGenerator<string> {
  switch (format) {
    case 'csv':
      return csvOf(books);
    case 'beancount':
      return journalOf(books, beancount);
    case 'hledger':
      return journalOf(books, hledger);
    case 'summary':
      return summaryCsv(books);
    case 'summary-page':
      return summaryPage(books);
  }
}

/** RFC 4180: a header, then one line per move, with CR LF. */
async function* csvOf(books: Books): AsyncGenerator<string> {
  const { period, parts } = books;
  const columns = columnsOf(books);
  yield csvLine(columns.map(({ name }) => name));
  for await (const part of parts()) {
    if (part.kind !== 'entry') continue;
    for (const row of rowsOf(part, period)) yield csvLine(columns.map(({ of }) => String(of(row) ?? '')));
  }
}
