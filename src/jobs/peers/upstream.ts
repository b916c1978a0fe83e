import type { Readable } from 'node:stream';
import { errors, Pool } from 'undici';
import { backOffMs } from '../../base/values/back-off.ts';
import type { JobPrice } from '../../base/values/amount.ts';
import type { Address } from '../../base/values/primitives.ts';
import type { Header, HeaderFields } from '../rules/route-headers.ts';

export interface UpstreamRequest {
  readonly method: string;
  /** Path and query, appended to the path of the upstream's URL. */
  readonly target: string;
  readonly headers: readonly Header[];
  readonly body: Buffer;
  /** Of the beginning of the answer, and of each pause in it. */
  readonly timeoutMs: number;
  /** Ends the exchange. */
  readonly signal: AbortSignal;
  /** For an upstream that is the gateway itself. */
  readonly paid?: {
    readonly payer: Address;
    readonly quoted: JobPrice;
    /** Whether it is charged for what it has used, in place of the quoted price. */
    readonly isMetered: boolean;
    /** Of an answer that can be kept. */
    readonly mostBytes: number;
  };
}

export interface UpstreamHead {
  readonly kind: 'head';
  readonly status: number;
  readonly headers: HeaderFields;
  /** Throws where the answer is not complete. */
  readonly body: Readable;
  /** Empty until the body has been read to its end. */
  readonly trailers: HeaderFields;
}

/** Machine-readable: why an upstream gave no whole answer. */
export type UpstreamFailure =
  | 'upstream_unreachable'
  | 'upstream_timeout'
  | 'upstream_reset'
  | 'upstream_malformed'
  | 'upstream_too_large'
  | 'result_store_unavailable'
  | 'not_sendable'
  /** The runner of its job has refused the call, or failed too often. */
  | 'runner_failed'
  | 'aborted';

export type UpstreamAnswer =
  | UpstreamHead
  | { readonly kind: 'failed'; readonly reason: UpstreamFailure; readonly error: string };

export interface Upstream {
  /** One exchange: no redirect is followed, nothing is sent twice, and it never rejects. The caller reads the body to its end, or destroys it. */
  request(request: UpstreamRequest): Promise<UpstreamAnswer>;
  /** Whether it was unreachable so often that nothing is sold before the pause is over. */
  isOpen(): boolean;
  /** Whether its circuit breaker has opened, and no request has reached it since. */
  isFailing(): boolean;
  close(): Promise<void>;
}

/** Failures to connect in a row that open the circuit breaker. An answer, whatever it says, closes it. */
const failuresToOpen = 5;
const pauses = { firstMs: 1_000, longestMs: 30_000 };
const connections = 512;
const connectTimeoutMs = 5_000;

/**
 * Keeps connections alive to one upstream.
 * @param url http or https, without a query
 * @param now a clock that never goes back, in milliseconds
 */
function createUpstream(url: string, now: () => number = () => performance.now()): Upstream {
  const { origin, pathname } = new URL(url);
  const base = pathname.replace(/\/+$/, '');
  const pool = new Pool(origin, { connections, connect: { timeout: connectTimeoutMs }, pipelining: 1 });
  let failures = 0;
  let pauseEndsAt = 0;
  return {
    async request({ method, target, headers, body, timeoutMs, signal }) {
      // undici's own limits begin when a connection is free, and its signal acts from then on
      const over = Promise.withResolvers<never>();
      let isOver = false;
      const end = (error: Error): void => {
        isOver = true;
        over.reject(error);
      };
      const timer = setTimeout(() => end(new errors.HeadersTimeoutError()), timeoutMs);
      const abort = (): void => end(new Error('aborted'));
      signal.addEventListener('abort', abort, { once: true });
      try {
        const asked = pool.request({
          method,
          path: `${base}${target}`,
          headers: headers.flat(),
          body: body.length > 0 ? body : null,
          headersTimeout: timeoutMs,
          bodyTimeout: timeoutMs,
          signal,
        });
        asked.then(
          ({ body: late }) => {
            // a body without a listener ends the process where it is destroyed
            if (isOver) late.on('error', () => {}).destroy();
            return undefined;
          },
          () => undefined,
        );
        const answer = await Promise.race([asked, over.promise]);
        failures = 0;
        const { statusCode: status, headers: fields, body: stream, trailers } = answer;
        // a reader gets its error; a body that is destroyed unread has no reader
        stream.on('error', () => {});
        return { kind: 'head', status, headers: fields, body: stream, trailers };
      } catch (error) {
        const reason = signal.aborted ? 'aborted' : failureOf(error);
        if (reason === 'upstream_unreachable' && ++failures >= failuresToOpen)
          pauseEndsAt = now() + backOffMs(pauses, failures - failuresToOpen);
        return { kind: 'failed', reason, error: textOf(error) };
      } finally {
        clearTimeout(timer);
        signal.removeEventListener('abort', abort);
      }
    },
    isOpen: () => failures >= failuresToOpen && now() < pauseEndsAt,
    isFailing: () => failures >= failuresToOpen,
    close: () => pool.destroy(),
  };
}

const unreachable: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
  'CERT_HAS_EXPIRED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'ERR_TLS_CERT_ALTNAME_INVALID',
]);

/** Why an exchange failed, or its body. */
export function failureOf(error: unknown): UpstreamFailure {
  if (error instanceof errors.HeadersTimeoutError || error instanceof errors.BodyTimeoutError)
    return 'upstream_timeout';
  if (error instanceof errors.HTTPParserError) return 'upstream_malformed';
  if (error instanceof errors.ResponseContentLengthMismatchError) return 'upstream_malformed';
  if (
    error instanceof errors.InvalidArgumentError ||
    error instanceof errors.RequestContentLengthMismatchError
  )
    return 'not_sendable';
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (unreachable.has(code)) return 'upstream_unreachable';
  return code.startsWith('HPE_') ? 'upstream_malformed' : 'upstream_reset';
}

export function textOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, 300);
}

/**
 * The whole body of an answer; undefined where it is longer than `maxBytes`, and what follows is then not read.
 * @throws where the body is not complete
 */
export async function readWithin({ body }: UpstreamHead, maxBytes: number): Promise<Buffer | undefined> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of body as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > maxBytes) return undefined;
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

/** The upstreams of a process, each opened once. */
export interface Upstreams {
  of(url: string): Upstream;
  /** With connections of its own: what is free takes none of what is paid for. */
  ofFree(url: string): Upstream;
  close(): Promise<void>;
}

/** @param own those that are no servers, by the name that a configuration has in place of a URL */
export function createUpstreams(own: Readonly<Record<string, Upstream>> = {}): Upstreams {
  const open = new Map<string, Upstream>(Object.entries(own));
  const find = (key: string, url: string): Upstream => {
    const known = open.get(key) ?? createUpstream(url);
    open.set(key, known);
    return known;
  };
  return {
    of: (url) => find(url, url),
    ofFree: (url) => find(`free ${url}`, url),
    async close() {
      await Promise.all([...open.values()].map((upstream) => upstream.close()));
    },
  };
}
