import type { SourceAnswer } from '../../../base/values/round.ts';
import { jsonProblem } from '../../../base/values/bounded-json.ts';
import { inverseRate, parseRate } from '../../../base/values/rate.ts';
import type { HttpRateSource } from '../../../base/values/token.ts';
import { createHttpPool, isSuccess } from '../../../base/peers/http/http.ts';
import { problem } from './source-answer.ts';

const maxResponseBytes = 256 * 1024;

/**
 * Asks an HTTP endpoint for a rate. Its time is the moment of asking, unless the document has its own time. Follows no redirect;
 * never rejects.
 */
export async function askHttpRate(
  source: HttpRateSource,
  nowSecs: number,
  timeoutMs: number,
): Promise<SourceAnswer> {
  const { pathname, search } = new URL(source.url);
  const pool = createHttpPool(source.url, { connections: 1 });
  const answer = await pool.request({
    method: 'GET',
    path: pathname + search,
    headers: { accept: 'application/json' },
    timeoutMs,
    maxResponseBytes,
  });
  await pool.close();
  if (answer.kind === 'failed')
    return problem(
      answer.cause === 'too_large' || answer.cause === 'malformed' ? answer.cause : 'unreachable',
    );
  if (!isSuccess(answer.status)) return problem('unreachable');
  const document = parseNumbersAsText(answer.body);
  const text = valueAt(document, source.pointer);
  if (typeof text !== 'string') return problem('malformed');
  const said = parseRate(text);
  if (!said) return problem(/^-|^0+(?:\.0*)?$/.test(text) ? 'not_positive' : 'malformed');
  const rate = source.inverse ? inverseRate(said) : said;
  if (!rate) return problem('malformed');
  if (source.timePointer === undefined) return { kind: 'rate', rate, observedAtSecs: nowSecs };
  const time = valueAt(document, source.timePointer);
  if (typeof time !== 'string' || !/^\d{1,12}(?:\.\d{1,9})?$/.test(time)) return problem('malformed');
  return { kind: 'rate', rate, observedAtSecs: Math.floor(Number(time)) };
}

/** TypeScript's library does not declare the third argument of a reviver yet. */
type Reviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown;

const numbersAsText: Reviver = (_, value, { source }) => (typeof value === 'number' ? source : value);

/** A reviver takes ten times as long as the parser. A document of 256 KiB with real prices has fewer. */
const documentBounds = { maxDepth: 128, maxMarks: 15_000 };

/** A JSON value in which each number is its own text: a double would change its digits. Undefined if it is not JSON, or of too many values. */
function parseNumbersAsText(body: Buffer): unknown {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(body);
    if (jsonProblem(body, documentBounds) !== undefined) return undefined;
    return JSON.parse(text, numbersAsText as (key: string, value: unknown) => unknown) as unknown;
  } catch {
    return undefined;
  }
}

/** The value that a JSON pointer (RFC 6901) names; undefined if there is none. */
function valueAt(document: unknown, pointer: string): unknown {
  let value = document;
  for (const part of pointer.split('/').slice(1)) {
    if (typeof value !== 'object' || value === null) return undefined;
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
    if (Array.isArray(value) && !/^(?:0|[1-9]\d{0,9})$/.test(key)) return undefined;
    value = Object.hasOwn(value, key) ? (Reflect.get(value, key) as unknown) : undefined;
  }
  return value;
}
