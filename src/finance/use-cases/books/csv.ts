import { csvLine } from '../../../base/values/csv-line.ts';
import type { Books } from './books.ts';
import { columnsOf, rowsOf } from './rows.ts';

/** RFC 4180: a header, then one line per move, with CR LF. */
export async function* csvOf(books: Books): AsyncGenerator<string> {
  const { period, parts } = books;
  const columns = columnsOf(books);
  yield csvLine(columns.map(({ name }) => name));
  for await (const part of parts()) {
    if (part.kind !== 'entry') continue;
    for (const row of rowsOf(part, period)) yield csvLine(columns.map(({ of }) => String(of(row) ?? '')));
  }
}
