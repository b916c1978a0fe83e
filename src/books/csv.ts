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

/** A line of texts. */
export function csvLine(fields: readonly string[]): string {
  return `${fields.map(csvField).join(',')}\r\n`;
}

/** Spreadsheets evaluate a field that begins like a formula: a leading apostrophe makes it text. */
export function csvField(text: string): string {
  const safe = /^[=+\-@\t\r\n]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
