/** A line of texts. */
export function csvLine(fields: readonly string[]): string {
  return `${fields.map(csvField).join(',')}\r\n`;
}

/**
 * Where a field can begin, with what spreadsheets pass over before a formula: blanks, controls, marks and characters without width. Some
 * end a field at a semicolon or a tab, whatever the quotes say: the text after one begins a field as well.
 */
const beginning =
  /^[=+\-@＝＋－＠﹦﹢﹣﹫]|[;\s\u2800\p{C}\p{M}\p{Z}\p{Default_Ignorable_Code_Point}]+[=+\-@＝＋－＠﹦﹢﹣﹫]?/gu;

/** Spreadsheets evaluate a field that begins like a formula, with full-width and small signs too: an apostrophe before it makes it text. */
export function csvField(text: string): string {
  const safe = text.replaceAll(beginning, (found, at: number) => {
    const isFormula = /[=+\-@＝＋－＠﹦﹢﹣﹫]$/.test(found);
    const first = at === 0 && (isFormula || /[\t\r\n]/.test(found)) ? "'" : '';
    return first + (isFormula ? found.replaceAll(/[;\t\r\n]/g, "$&'") : found);
  });
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
