import { errors, type Dispatcher } from 'undici';
import type { HttpHead, HttpHeaders } from '../../../base/peers/http/http.ts';
import { type Fault, faultOf, type UpstreamCause } from './answer.ts';
import type { Occupant } from './slots.ts';

export interface ExchangeTimeouts {
  readonly connectTimeoutMs: number;
  /** From the request's first byte to `begin`. */
  readonly firstByteTimeoutMs: number;
  /** From `begin` on, between bytes; paused while the reader is slow. */
  readonly idleTimeoutMs: number;
  /** For the whole exchange, including a slow reader. */
  readonly totalTimeoutMs: number;
}

type BodyEnd = { readonly kind: 'end' } | Fault;
export type BodyStep = { readonly kind: 'bytes'; readonly bytes: Buffer } | BodyEnd;

/** How many bytes may wait for the reader before the upstream is paused. */
const maxQueuedBytes = 64 * 1024;
/** Bytes that are read after a complete answer, so that the connection can be reused. */
const maxDrainBytes = 64 * 1024;
const maxDrainMs = 1000;

/**
 * One request as undici's dispatcher drives it: its head, then its body, pulled a chunk at a time. Nothing is sent twice, and
 * nothing rejects: a failure is the last step.
 */
export class Exchange implements Dispatcher.DispatchHandler, Occupant {
  readonly head: Promise<HttpHead | Fault>;
  /** Resolves when the upstream is done or was given up; its bytes may still be read. */
  readonly over: Promise<BodyEnd>;
  readonly #timeouts: ExchangeTimeouts;
  readonly #signal: AbortSignal | undefined;
  readonly #resolveHead: (head: HttpHead | Fault) => void;
  readonly #tellOver: (end: BodyEnd) => void;
  readonly #total: NodeJS.Timeout;
  readonly #queue: Buffer[] = [];
  #phase: NodeJS.Timeout | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #end: BodyEnd | undefined;
  #wake: ((step: BodyStep) => void) | undefined;
  #queuedBytes = 0;
  #pausedAtMs: number | undefined;
  #idleMs: number | undefined;
  #drainedBytes: number | undefined;

  /** @param onOver called as soon as `over` is known, before a waiting step resolves */
  constructor(timeouts: ExchangeTimeouts, onOver: (exchange: Exchange) => void, signal?: AbortSignal) {
    const head = Promise.withResolvers<HttpHead | Fault>();
    const over = Promise.withResolvers<BodyEnd>();
    this.head = head.promise;
    this.over = over.promise;
    this.#resolveHead = head.resolve;
    this.#tellOver = (end) => {
      onOver(this);
      over.resolve(end);
    };
    this.#timeouts = timeouts;
    this.#signal = signal;
    this.#total = this.#stopIn(timeouts.totalTimeoutMs, () =>
      this.#pausedAtMs !== undefined ? 'slow_reader' : 'total_timeout',
    );
    this.#phase = this.#stopIn(timeouts.connectTimeoutMs, 'connect_timeout');
    if (signal?.aborted) this.#abort();
    else signal?.addEventListener('abort', this.#abort);
  }

  /** Since when the upstream waits for the reader. */
  get stalledSinceMs(): number | undefined {
    return this.#pausedAtMs;
  }

  endStalled(): void {
    this.stop('slow_reader', 'The reader was stalled, and another request needed the slot');
  }

  /** The answer begins: from now on the idle time-out applies. */
  begin(idleMs = this.#timeouts.idleTimeoutMs): void {
    this.#idleMs = idleMs;
    this.#watch();
  }

  /** The next chunk, or how the body ended. One call at a time; chunks that arrived before a failure come first. */
  next(): Promise<BodyStep> {
    const bytes = this.takeQueued();
    if (bytes !== undefined) {
      this.#resume();
      return Promise.resolve({ kind: 'bytes', bytes });
    }
    if (this.#end) return Promise.resolve(this.#end);
    return new Promise((resolve) => {
      this.#wake = resolve;
      this.#resume();
    });
  }

  /** A chunk that has arrived already. A paused upstream continues only with `next`. */
  takeQueued(): Buffer | undefined {
    const bytes = this.#queue.shift();
    if (bytes !== undefined) this.#queuedBytes -= bytes.length;
    return bytes;
  }

  /** Gives up, and closes the connection immediately. */
  stop(cause: UpstreamCause, detail: string): void {
    if (cause === 'aborted') this.#queue.length = 0;
    this.#finish(faultOf(cause, detail));
    this.#controller?.abort(new Error(detail));
  }

  /** The answer is complete: the rest is read for a moment, which keeps the connection reusable. */
  drain(): void {
    if (this.#end) return;
    this.#drainedBytes = 0;
    this.#queue.length = 0;
    this.#queuedBytes = 0;
    this.#release();
    this.#tellOver({ kind: 'end' });
    this.#phase = this.#stopIn(maxDrainMs, 'stalled');
    this.#resume();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // the exchange was given up, or undici would send the same request a second time: neither may be sent
    if (this.#end || this.#controller) return controller.abort(new Error('Not to be sent'));
    this.#controller = controller;
    clearTimeout(this.#phase);
    this.#phase = this.#stopIn(this.#timeouts.firstByteTimeoutMs, 'first_byte_timeout');
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: HttpHeaders): void {
    if (status >= 200) this.#resolveHead({ status, headers });
  }

  onResponseData(controller: Dispatcher.DispatchController, bytes: Buffer): void {
    if (this.#drainedBytes !== undefined) {
      this.#drainedBytes += bytes.length;
      if (this.#drainedBytes > maxDrainBytes) this.stop('too_large', 'Too many bytes after the end');
      return;
    }
    if (this.#wake) return this.#hand({ kind: 'bytes', bytes });
    this.#queue.push(bytes);
    this.#queuedBytes += bytes.length;
    if (this.#queuedBytes >= maxQueuedBytes) {
      this.#pausedAtMs ??= performance.now();
      controller.pause();
    }
    this.#watch();
  }

  onResponseEnd(): void {
    this.#finish({ kind: 'end' });
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.#finish(faultOf(causeOf(error, this.#controller !== undefined), error.message));
  }

  readonly #abort = (): void => this.stop(this.#controller ? 'aborted' : 'not_sent', 'Aborted by the caller');

  #stopIn(timeoutMs: number, given: UpstreamCause | (() => UpstreamCause)): NodeJS.Timeout {
    return setTimeout(() => {
      const cause = typeof given === 'function' ? given() : given;
      this.stop(cause, `${cause} after ${timeoutMs} ms`);
    }, timeoutMs);
  }

  /** Restarts the idle time-out. */
  #watch(): void {
    if (this.#idleMs === undefined || this.#end) return;
    clearTimeout(this.#phase);
    this.#phase = this.#pausedAtMs !== undefined ? undefined : this.#stopIn(this.#idleMs, 'stalled');
  }

  #resume(): void {
    if (this.#pausedAtMs === undefined || this.#queuedBytes > 0) return;
    this.#pausedAtMs = undefined;
    this.#watch();
    this.#controller?.resume();
  }

  #hand(step: BodyStep): void {
    const wake = this.#wake;
    this.#wake = undefined;
    this.#watch();
    wake?.(step);
  }

  #finish(end: BodyEnd): void {
    if (this.#end) return;
    this.#end = end;
    this.#release();
    this.#tellOver(end);
    this.#resolveHead(end.kind === 'end' ? faultOf('malformed', 'No response head') : end);
    this.#hand(end);
  }

  #release(): void {
    clearTimeout(this.#total);
    clearTimeout(this.#phase);
    this.#idleMs = undefined;
    this.#signal?.removeEventListener('abort', this.#abort);
  }
}

const causeByCode: Readonly<Record<string, UpstreamCause>> = {
  UND_ERR_CONNECT_TIMEOUT: 'connect_timeout',
  UND_ERR_HEADERS_OVERFLOW: 'too_large',
  UND_ERR_INVALID_ARG: 'invalid_request',
  UND_ERR_DESTROYED: 'closed',
  UND_ERR_CLOSED: 'closed',
};

function causeOf(error: Error, isSent: boolean): UpstreamCause {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  if (error instanceof errors.HTTPParserError && code !== 'HPE_INVALID_EOF_STATE') return 'malformed';
  return causeByCode[code] ?? (isSent ? 'cut' : 'unreachable');
}
