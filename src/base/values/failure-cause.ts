import { createHash } from 'node:crypto';

/** Why a call failed, as far as many calls have it in common. */
export interface FailureCause {
  /** The same for the same cause, in every version: the reason, the status if there was one, and a hash of `words`. */
  readonly key: string;
  /** The runner's message, without the parts that differ from call to call; one line without control characters. Empty if it said nothing. */
  readonly words: string;
}

/** The form of a cause's key. */
export const failureCausePattern = /^[a-z0-9_]{1,100}(?:-[1-5]\d\d)?-[0-9a-f]{12}$/;

const longestWords = 160;
const hashChars = 12;
/** Replaces a part that differs from call to call. */
const something = '#';

/**
 * In this order: each takes a text of which the later ones would take only a part. None begins in the middle of a word, so that a hostile text
 * costs no more than another one of its length.
 */
const differing: readonly RegExp[] = [
  /\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?/g,
  /(?<![\w.+-])[\w.+-]+@[\w.-]+/g,
  /\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/gi,
  /\b0x[0-9a-f]+\b/gi,
  // ids in hexadecimal digits, and long tokens: words are not that long, or have no digit
  /\b(?=[a-f]*\d)[0-9a-f]{8,}\b/gi,
  /(?<![\w-])(?=[A-Za-z_-]*\d)[\w-]{16,}/g,
  /\d+(?:[.,:]\d+)*/g,
];

/**
 * The cause of a dead letter.
 * @param reason as the ledger has it
 * @param error the runner's last words, as `lastWords()` keeps them
 */
export function failureCause(reason: string | null, error: string | null): FailureCause {
  const line = (error ?? '')
    .replaceAll(/[\p{C}\p{Zl}\p{Zp}\s]+/gu, ' ')
    // from the first frame of a stack on, which differs with each version of the runner
    .replace(/ at \S+ \(.*$/, '')
    .trim();
  const [prefix = '', status] = /^status ([1-5]\d\d)\b/.exec(line) ?? [];
  const common = differing
    .reduce((rest, form) => rest.replaceAll(form, something), line.slice(prefix.length))
    .replaceAll(/#(?:[\s.,:;/_-]*#)+/g, something);
  const words = Array.from(`${prefix}${common}`).slice(0, longestWords).join('');
  const hash = createHash('sha256').update(words).digest('hex').slice(0, hashChars);
  const kind = reason !== null && /^[a-z0-9_]{1,100}$/.test(reason) ? reason : 'unknown';
  return { key: [kind, ...(status === undefined ? [] : [status]), hash].join('-'), words };
}
