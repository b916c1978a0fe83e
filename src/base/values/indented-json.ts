/** A text that does not end is one as well: looking for an end once from each of its quotation marks would take the square of its length. */
const pieces = /"[^"\\]*(?:\\[^][^"\\]*)*(?:"|\\?$)|[[{]\s*[\]}]|[[\]{},:]|[^\s[\]{},:"]+/g;

/** Deeper values stand as far to the right as those of this depth. */
const maxIndents = 20;

/**
 * A JSON text with one value a line, up to a length; its numbers and strings stay unchanged. Text that is not JSON comes out as some
 * text: parse it first.
 */
export function indentedJson(text: string, maxChars: number): string {
  const lines: string[] = [''];
  let chars = 0;
  let depth = 0;
  const write = (piece: string): void => {
    lines[lines.length - 1] += piece;
    chars += piece.length;
  };
  const breakLine = (): void => {
    lines.push('  '.repeat(Math.min(depth, maxIndents)));
    chars += 2 * depth + 1;
  };
  for (const [piece] of text.matchAll(pieces)) {
    if (chars > maxChars) break;
    if (piece === ']' || piece === '}') {
      depth = Math.max(0, depth - 1);
      breakLine();
    }
    if (piece === ':') write(': ');
    else write(/^[[{]/.test(piece) ? piece.replaceAll(/\s/g, '') : piece);
    if (piece === '[' || piece === '{') depth += 1;
    if (piece === '[' || piece === '{' || piece === ',') breakLine();
  }
  return lines.join('\n').slice(0, maxChars);
}
