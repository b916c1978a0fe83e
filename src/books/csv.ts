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

/**
 * Spreadsheets evaluate a field that begins like a formula, with full-width signs too: an apostrophe before it makes it text. Some end a
 * field at a semicolon or a tab, whatever the quotes say: what is behind one begins a field as well.
 */
export function csvField(text: string): string {
  const safe = text
    .replaceAll(/(?<=[;\t\r\n])(?=\s*[=+\-@＝＋－＠])/g, "'")
    .replace(/^(?=\s*[=+\-@＝＋－＠]|[\t\r\n])/, "'");
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
