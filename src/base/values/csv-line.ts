/** A line of texts. */
export function csvLine(fields: readonly string[]): string {
  return `${fields.map(csvField).join(',')}\r\n`;
}

/**
 * Spreadsheets evaluate a field that begins like a formula, with full-width signs too: an apostrophe before it makes it text. Some end a
 * field at a semicolon or a tab, whatever the quotes say: the text after one begins a field as well.
 */
export function csvField(text: string): string {
  const safe = text
    .replaceAll(/(?<=[;\t\r\n])(?=\s*[=+\-@＝＋－＠])/g, "'")
    .replace(/^(?=\s*[=+\-@＝＋－＠]|[\t\r\n])/, "'");
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
