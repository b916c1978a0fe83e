import { Pool } from 'undici';
import type { HttpHead } from '../../../base/peers/http/http.ts';
import { readRetryAfterMs } from '../../../base/peers/http/retry-after.ts';
import {
  failedBy,
  type Fault,
  faultOf,
  type UpstreamAnswer,
  type UpstreamCause,
  type UpstreamCompleted,
  type UpstreamStreaming,
} from './answer.ts';
import { Exchange, type ExchangeTimeouts } from './exchange.ts';
import { createSlots, type Slot, type SlotLimits } from './slots.ts';
import { openStream } from './stream.ts';
import { readError, readWhole } from './whole.ts';

export interface UpstreamOptions extends ExchangeTimeouts, SlotLimits {
  readonly name: string;
  /** In the form of OpenAI's clients, with `/v1`. A query in it is sent with every request. */
  readonly baseUrl: string;
  /** Sent as a bearer token. */
  readonly key?: string;
  /** Maximum bytes of a body, or of one event of a stream. */
  readonly maxAnswerBytes: number;
}

export interface CompletionOptions {
  /** Whether the body requests a stream: the answer is read as one. */
  readonly stream: boolean;
  /** Its abort closes the connection immediately, a stream's too. */
  readonly signal?: AbortSignal;
  /** It is of a free model. */
  readonly isFree?: boolean;
  /** Taken before; without it one is taken. It is released when the answer ends. */
  readonly slot?: Slot;
}

/** One model upstream that implements OpenAI's API. */
export interface Upstream {
  readonly name: string;
  /** The number of running requests. */
  readonly running: number;
  /** Takes a slot before its request is sent; undefined if the upstream is busy. It must be released, or a request sent with it. */
  reserve(isFree: boolean): Slot | undefined;
  /**
   * Posts a chat completion once: no retry, no redirect, and nothing of the client's request but the body. Never rejects.
   * @param body JSON, sent unchanged
   */
  complete(body: Buffer | string, options: CompletionOptions): Promise<UpstreamAnswer>;
  /** Refuses new requests, waits for running ones, then closes the connections. */
  close(): Promise<void>;
}

/**
 * A client of one upstream with its own connections, HTTP/1.1 and kept alive.
 * @throws TypeError or undici's InvalidArgumentError when the URL is not http(s): a mistake of the configuration
 */
export function createUpstream(options: UpstreamOptions): Upstream {
  const { origin, pathname, search } = new URL(options.baseUrl);
  // the exchange has exact timers; this one also ends connections without a waiting request
  const connect = { timeout: options.connectTimeoutMs };
  const pool = new Pool(origin, { headersTimeout: 0, bodyTimeout: 0, allowH2: false, connect });
  const path = `${pathname.replace(/\/+$/, '')}/chat/completions${search}`;
  const running = new Set<Exchange>();
  let isClosed = false;

  const slots = createSlots(options);

  const send = (
    body: Buffer | string,
    completion: CompletionOptions,
    slot: Slot,
  ): Promise<UpstreamAnswer> => {
    const { stream, signal } = completion;
    const startedAtMs = performance.now();
    const onOver = (over: Exchange): void => {
      running.delete(over);
      slot.release();
    };
    const exchange = new Exchange(options, onOver, signal);
    slot.occupant = exchange;
    if (!signal?.aborted) {
      running.add(exchange);
      pool.dispatch({ method: 'POST', path, headers: headersFor(stream, options.key), body }, exchange);
    }
    return readAnswer(exchange, completion, startedAtMs, options.maxAnswerBytes);
  };

  return {
    name: options.name,
    get running() {
      return running.size;
    },
    reserve: (isFree) => slots.take(isFree),
    async complete(body, completion) {
      const slot = completion.slot ?? slots.take(completion.isFree ?? false);
      if (isClosed) {
        slot?.release();
        return failedBy(faultOf('closed', 'The upstream is closed'));
      }
      return slot ? send(body, completion, slot) : { kind: 'busy' };
    },
    async close() {
      isClosed = true;
      await Promise.all(Array.from(running, ({ over }) => over));
      await pool.destroy();
    },
  };
}

function headersFor(stream: boolean, key: string | undefined): Record<string, string> {
  return {
    ...(key !== undefined && { authorization: `Bearer ${key}` }),
    'content-type': 'application/json',
    accept: stream ? 'text/event-stream' : 'application/json',
    'user-agent': 'tollbook',
  };
}

async function readAnswer(
  exchange: Exchange,
  { stream }: CompletionOptions,
  startedAtMs: number,
  maxAnswerBytes: number,
): Promise<UpstreamAnswer> {
  const head = await exchange.head;
  if ('kind' in head) return failedBy(head);
  if (head.status !== 200) return readRefusal(exchange, head);
  const wrong = wrongLabel(head, stream);
  if (wrong !== undefined) {
    exchange.stop(wrong, 'The content type is not what was asked for');
    return failedBy(faultOf(wrong, 'The content type is not what was asked for'));
  }
  const read: typeof openStream | typeof readWhole = stream ? openStream : readWhole;
  const answer: UpstreamStreaming | UpstreamCompleted | Fault = await read(
    exchange,
    startedAtMs,
    maxAnswerBytes,
  );
  return answer.kind === 'fault' ? failedBy(answer) : answer;
}

/** Any other content type, or none, is ignored: the content decides. */
function wrongLabel({ headers }: HttpHead, stream: boolean): UpstreamCause | undefined {
  const type = headers['content-type'];
  const media = typeof type === 'string' ? /^[^;]*/.exec(type)?.[0].trim().toLowerCase() : undefined;
  if (media === 'text/html') return 'html';
  return media === (stream ? 'application/json' : 'text/event-stream') ? 'wrong_type' : undefined;
}

/** Statuses caused by the request itself; every other 4xx concerns the upstream, its key or its limits. */
const requestFaults: ReadonlySet<number> = new Set([400, 413, 422]);

async function readRefusal(exchange: Exchange, { status, headers }: HttpHead): Promise<UpstreamAnswer> {
  const error = await readError(exchange);
  const retryAfterMs = readRetryAfterMs(headers['retry-after']);
  const retryAfterSecs = retryAfterMs === undefined ? undefined : Math.ceil(retryAfterMs / 1000);
  if (status < 400 || status >= 500)
    return failedBy(faultOf(`status_${status}`, error?.message ?? '', error), retryAfterSecs);
  return {
    kind: 'refused',
    status,
    fault: requestFaults.has(status) ? 'request' : 'upstream',
    ...(error && { error }),
    ...(retryAfterSecs !== undefined && { retryAfterSecs }),
  };
}
