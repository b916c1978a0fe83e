import {
  createHttpPool,
  isSuccess,
  type HttpAnswer,
  type HttpHead,
  type HttpHeaders,
  type Overflow,
} from '../../../base/peers/http/http.ts';
import { answerPriceHeader } from '../../../base/values/answer-price.ts';
import { readRetryAfterMs } from '../../../base/peers/http/retry-after.ts';

/** One delivery: the headers are the caller's, signatures and metadata included. */
export interface Push {
  readonly headers: Readonly<Record<string, string>>;
  /** The request's bytes, untouched. */
  readonly body: Buffer;
  readonly contentType?: string;
  /** Takes a result that is longer than `maxResultBytes`. */
  readonly overflow?: Overflow | undefined;
}

export type PushAnswer =
  | {
      readonly kind: 'completed';
      readonly status: number;
      readonly contentType?: string;
      /** What the runner says that its result costs. */
      readonly price?: string;
      readonly result: Buffer;
      /** The runner did the work, but its result was over the cap: `result` is empty, not truncated. */
      readonly resultOmitted: boolean;
      /** The result is in the push's `overflow`: `result` is empty. */
      readonly hasOverflowed?: true;
    }
  /** `busy`: the runner has no room for the call at this moment: nothing is wrong with either. */
  | {
      readonly kind: 'retry' | 'busy';
      readonly reason: string;
      readonly retryAfterMs?: number;
      /** What was said, as it came. */
      readonly error: string;
    }
  | { readonly kind: 'dead'; readonly reason: string; readonly error: string };

/** Of the 4xx those that say nothing against the call: proxies before a runner answer 408 and 425 as well. */
const passingStatuses: ReadonlySet<number> = new Set([408, 410, 425, 429]);

/** The reason of a refusal by which a runner says that it accepts no more calls. */
export const goneReason = 'status_410';

export interface PushRunner {
  /** Delivers once. Delivery is at least once: a retry may repeat work that was done. */
  push(push: Push): Promise<PushAnswer>;
  /** Waits for running deliveries, then drops the connections. */
  close(): Promise<void>;
}

export interface PushRunnerOptions {
  readonly url: string;
  /** The limit of a whole delivery, including its result. */
  readonly timeoutMs: number;
  readonly maxResultBytes: number;
}

/** Of a refusal's body: more than an operator is shown. */
const maxWordBytes = 4_000;

/**
 * A client of one runner's push endpoint.
 * @throws TypeError for an invalid URL
 */
export function createPushRunner(options: PushRunnerOptions): PushRunner {
  const { pathname, search } = new URL(options.url);
  const pool = createHttpPool(options.url);
  const target = {
    method: 'POST',
    path: pathname + search,
    timeoutMs: options.timeoutMs,
    maxResponseBytes: options.maxResultBytes,
  } as const;
  return {
    async push({ headers, body, contentType, overflow }) {
      const type = contentType === undefined ? {} : { 'content-type': contentType };
      const more = overflow && { overflow };
      return judge(await pool.request({ ...target, headers: { ...headers, ...type }, body, ...more }));
    },
    close: () => pool.close(),
  };
}

function judge(answer: HttpAnswer): PushAnswer {
  if (answer.kind === 'response') {
    if (!isSuccess(answer.status)) return refused(answer, answer.body);
    const overflowed = answer.hasOverflowed && { hasOverflowed: answer.hasOverflowed };
    return { ...completed(answer, answer.body), ...overflowed };
  }
  const { head, cause } = answer;
  // the status of a refusal decides alone; a result also requires its complete body
  if (head && !isSuccess(head.status)) return refused(head, undefined);
  if (head && cause === 'too_large') return completed(head, undefined);
  const error = answer.error.message;
  // the HTTP client refused the gateway's headers: a retry would be refused too
  if (cause === 'invalid_request') return { kind: 'dead', reason: cause, error };
  return { kind: 'retry', reason: cause, error };
}

function completed(head: HttpHead, result: Buffer | undefined): Extract<PushAnswer, { kind: 'completed' }> {
  return {
    kind: 'completed',
    status: head.status,
    ...contentTypeOf(head),
    ...priceOf(head),
    result: result ?? Buffer.alloc(0),
    resultOmitted: result === undefined,
  };
}

function refused({ status, headers }: HttpHead, body: Buffer | undefined): PushAnswer {
  const reason = `status_${status}`;
  const error = words(status, headers, body);
  if (status >= 400 && status < 500 && !passingStatuses.has(status)) return { kind: 'dead', reason, error };
  const kind = status === 503 && !isAskedByHandler(body) ? 'busy' : 'retry';
  return { kind, reason, ...retryAfter(headers['retry-after']), error };
}

/** The runner library said 503 for a handler that asks for another try, before it said 429: that call has failed. */
function isAskedByHandler(body: Buffer | undefined): boolean {
  return body !== undefined && body.subarray(-64).toString('latin1').endsWith('"code":"retry_later"}');
}

/** The status, with the beginning of a body that is text. */
function words(status: number, { 'content-type': type }: HttpHeaders, body: Buffer | undefined): string {
  const isText = type === undefined || /^(?:text\/|application\/(?:[\w.+-]*\+)?json\b)/i.test(String(type));
  if (status < 400)
    return `status ${status}: redirects are not followed. Set the runner's url to the address that answers itself.`;
  if (!isText || !body?.length) return `status ${status}`;
  return `status ${status}: ${body.subarray(0, maxWordBytes).toString('utf8')}`;
}

function contentTypeOf({ headers }: HttpHead): { readonly contentType?: string } {
  const type = headers['content-type'];
  return typeof type === 'string' && /^[\x20-\x7e]{1,200}$/.test(type) ? { contentType: type } : {};
}

/** A header that came twice is no price. */
function priceOf({ headers }: HttpHead): { readonly price?: string } {
  const price = headers[answerPriceHeader];
  return price === undefined ? {} : { price: [price].flat().join(', ') };
}

function retryAfter(header: string | string[] | undefined): { readonly retryAfterMs?: number } {
  const retryAfterMs = readRetryAfterMs(header);
  return retryAfterMs === undefined ? {} : { retryAfterMs };
}
