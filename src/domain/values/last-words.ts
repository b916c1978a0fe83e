const longestChars = 500;
/** Of a longer text only the beginning is looked at. */
const readChars = 4_000;
const hidden = '[hidden]';

/**
 * What a runner said about a failure, for the operator's log and lists: one line of at most 500 characters. The given secrets and
 * what looks like a credential are hidden; a runner's stack trace may name its database.
 */
export function lastWords(text: string, secrets: readonly string[]): string {
  const known = secrets.reduce((rest, secret) => rest.replaceAll(secret, hidden), text.slice(0, readChars));
  return known
    .replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .replaceAll(/\b(bearer|basic) [\w.~+/=-]+/gi, `$1 ${hidden}`)
    .replaceAll(/:\/\/[^\s/@]+@/g, `://${hidden}@`)
    .replaceAll(
      /(secret|token|passw(?:or)?d|api[_-]?key|private[_-]?key)(["']?\s?[:=]\s?["']?)[^\s"',;&]+/gi,
      `$1$2${hidden}`,
    )
    .trim()
    .slice(0, longestChars);
}
