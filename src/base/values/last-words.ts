const longestChars = 500;
/** Of a longer text only the beginning is looked at. */
const readChars = 4_000;
const hidden = '[hidden]';

/**
 * What a runner or a node said about a failure, for the operator's log and lists: one line of at most 500 characters. The given secrets and
 * texts like credentials are hidden; a runner's stack trace may name its database.
 */
export function lastWords(text: string, secrets: readonly string[]): string {
  const known = secrets.reduce((rest, secret) => rest.replaceAll(secret, hidden), text.slice(0, readChars));
  const words = known
    .replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .replaceAll(/\b(bearer|basic) [\w.~+/=-]+/gi, `$1 ${hidden}`)
    .replaceAll(/:\/\/[^\s/@]+@/g, `://${hidden}@`)
    .replaceAll(
      /(secret|token|passw(?:or)?d|api[_-]?key|private[_-]?key)(["']?\s?[:=]\s?["']?)[^\s"',;&]+/gi,
      `$1$2${hidden}`,
    )
    .trim();
  return beginningOf(words, longestChars);
}

/** At most this many characters from the beginning of a text, and no half of a surrogate pair: PostgreSQL takes none. */
export function beginningOf(text: string, maxChars: number): string {
  return text.slice(0, maxChars).replace(/[\uD800-\uDBFF]$/, '');
}
