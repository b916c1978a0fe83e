import type { BooksPart } from './books.ts';
import { columns, rowsOf } from './rows.ts';

/** RFC 4180: a header, then one line per move, with CR LF. */
export async function* csvOf(parts: AsyncIterable<BooksPart>): AsyncGenerator<string> {
  yield line(columns.map(({ name }) => name));
  for await (const part of parts) {
    if (part.kind !== 'entry') continue;
    for (const row of rowsOf(part.entry)) yield line(columns.map(({ of }) => String(of(row) ?? '')));
  }
}

function line(fields: readonly string[]): string {
  return `${fields.map(csvField).join(',')}\r\n`;
}

/** Spreadsheets evaluate a field that begins like a formula: a leading apostrophe makes it text. */
export function csvField(text: string): string {
  const safe = /^[=+\-@\t\r\n]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
