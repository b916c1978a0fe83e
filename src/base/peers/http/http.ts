import type { TcpNetConnectOpts } from 'node:net';
import { TLSSocket } from 'node:tls';
import { buildConnector, errors, Pool, type Dispatcher } from 'undici';
import { createPromiseTracker } from '../../runtime/promise-tracker.ts';

/** Resolves a host for a connection, as that of `net.connect`. */
export type HttpLookup = NonNullable<TcpNetConnectOpts['lookup']>;

/** Why an exchange had no complete response. */
export type HttpFailure =
  | 'timeout'
  | 'connection'
  | 'too_large'
  | 'malformed'
  | 'invalid_request'
  | 'closed'
  /** Its `overflow` did not take the body. */
  | 'not_kept';

export type HttpHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** The status line and headers; they are known before the body, and survive its failure. */
export interface HttpHead {
  readonly status: number;
  readonly headers: HttpHeaders;
}

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Path and query on the pool's origin, starting with a slash. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer | string;
  /** One deadline over queueing, connecting, headers and the whole body. */
  readonly timeoutMs: number;
  /** A body beyond this is not read: `too_large`. */
  readonly maxResponseBytes: number;
  /** Takes the body of a 2xx beyond that. */
  readonly overflow?: Overflow;
}

/** Takes a body that is too long for memory, piece by piece. */
export interface Overflow {
  /** Of the whole body: beyond it, it is not read. */
  readonly maxBytes: number;
  /** Undefined if the next piece may come immediately, else resolves when it may. Rejects if the body cannot be kept: `not_kept`. */
  add(piece: Buffer): Promise<void> | undefined;
}

export type HttpAnswer =
  | ({
      readonly kind: 'response';
      readonly body: Buffer;
      /** The body is in the request's `overflow`, and `body` is empty. */
      readonly hasOverflowed?: true;
    } & HttpHead)
  | {
      readonly kind: 'failed';
      readonly cause: HttpFailure;
      /** False only when it is certain that no byte of the request reached the peer, nor ever will. */
      readonly sent: boolean;
      /** Set when the failure came after the headers. */
      readonly head?: HttpHead;
      /** For the log only: may quote the peer. */
      readonly error: Error;
    };

export interface HttpPool {
  /** One exchange: never retried, no redirect followed, never rejects. */
  request(request: HttpRequest): Promise<HttpAnswer>;
  /** Refuses new exchanges, lets the running ones reach their answer or deadline, then drops the connections. */
  close(): Promise<void>;
  /** Ends the running exchanges immediately (`closed`), as `close()` ends those that begin later. */
  abort(): Promise<void>;
}

export interface HttpPoolOptions {
  /** Most simultaneous connections (128); further exchanges queue within their own deadline. */
  readonly connections?: number | undefined;
  /** By default the system's. */
  readonly lookup?: HttpLookup | undefined;
  /**
   * HTTP/2 if an https peer speaks it. An exchange that the peer refused without processing it (RFC 9113, section 8.7) is sent
   * once more: for requests that are idempotent.
   */
  readonly http2?: boolean;
}

/**
 * Keeps connections alive to one origin. They are opened as exchanges need them: with HTTP/1.1 one for each exchange under way, with
 * HTTP/2 one for as many as the peer takes.
 * @param url http or https; its path is ignored
 * @throws TypeError or undici's InvalidArgumentError when the URL is not http(s): a mistake of the configuration
 */
export function createHttpPool(
  url: string,
  { connections = 128, lookup, http2 = false }: HttpPoolOptions = {},
): HttpPool {
  const { origin } = new URL(url);
  let speaksHttp2 = false;
  const connector = buildConnector({ allowH2: http2, ...(lookup && { lookup }) });
  const connect: buildConnector.connector = (options, callback) =>
    connector(options, (...connected) => {
      const [, socket] = connected;
      speaksHttp2 = socket instanceof TLSSocket && socket.alpnProtocol === 'h2';
      callback(...connected);
    });
  // the exchange has its own deadline: undici's timers are per phase and coarse
  const open = (): Pool =>
    new Pool(origin, { connections, headersTimeout: 0, bodyTimeout: 0, allowH2: http2, connect });
  let pool = open();
  const retired = new Set<Pool>();
  const running = createPromiseTracker();
  let closed = false;

  /**
   * A time-out ends one stream of an HTTP/2 connection, not the connection. If the peer has vanished, all later streams would time
   * out as well, until TCP gives up after many minutes: later exchanges get new connections.
   */
  const replace = (stale: Pool): void => {
    if (closed || stale !== pool) return;
    pool = open();
    retired.add(stale);
    void stale.close().then(() => retired.delete(stale));
  };

  const destroyAll = () => Promise.all([pool, ...retired].map((each) => each.destroy()));

  const run = async (request: HttpRequest): Promise<HttpAnswer> => {
    const used = pool;
    const answer = await exchange(used, request, http2);
    if (speaksHttp2 && answer.kind === 'failed' && answer.cause === 'timeout') replace(used);
    return answer;
  };

  return {
    request(request) {
      if (closed) return Promise.resolve(closedAnswer());
      return running.add(run(request));
    },
    async close() {
      closed = true;
      await running.drained();
      await destroyAll();
    },
    async abort() {
      closed = true;
      await destroyAll();
      await running.drained();
    },
  };
}

export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

function exchange(pool: Pool, request: HttpRequest, mayRepeat: boolean): Promise<HttpAnswer> {
  const { method, path, headers, body } = request;
  const options: Dispatcher.DispatchOptions = {
    method,
    path,
    headers: { ...headers },
    body: body ?? null,
  };
  return new Promise((resolve) => pool.dispatch(options, new Exchange(request, mayRepeat, resolve)));
}

function closedAnswer(): HttpAnswer {
  return { kind: 'failed', cause: 'closed', sent: false, error: new Error('The pool is closed') };
}

/**
 * One request as undici's dispatcher drives it. The handler is used instead of `Pool.request` because
 * `onRequestStart` runs right before the first byte is written: the only exact border for `sent`.
 */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #maxBytes: number;
  readonly #overflow: Overflow | undefined;
  #hasOverflowed = false;
  /** The overflow is busy. */
  #isSpilling = false;
  #hasEnded = false;
  readonly #mayRepeat: boolean;
  readonly #resolve: (answer: HttpAnswer) => void;
  readonly #timer: NodeJS.Timeout;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;
  #sent = false;
  #done = false;
  #controller: Dispatcher.DispatchController | undefined;
  #head: HttpHead | undefined;

  constructor(request: HttpRequest, mayRepeat: boolean, resolve: (answer: HttpAnswer) => void) {
    this.#maxBytes = request.maxResponseBytes;
    this.#overflow = request.overflow;
    this.#mayRepeat = mayRepeat;
    this.#resolve = resolve;
    this.#timer = setTimeout(
      () => this.#stop('timeout', new Error(`No answer within ${request.timeoutMs} ms`)),
      request.timeoutMs,
    );
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // after the deadline, and where undici would repeat a request that must not be, it is not sent
    if (this.#done || (this.#sent && !this.#mayRepeat)) return controller.abort(new Error('Not to be sent'));
    this.#sent = true;
    this.#controller = controller;
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: HttpHeaders): void {
    if (status < 200) return;
    this.#head = { status, headers };
    if (Number(headers['content-length']) > this.#mostBytes()) this.#tooLarge();
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes > this.#mostBytes()) return this.#tooLarge();
    this.#chunks.push(chunk);
    if (this.#bytes > this.#maxBytes) this.#spill(controller);
  }

  onResponseEnd(): void {
    const head = this.#head;
    if (head === undefined) return this.#fail('malformed', new Error('No response head'));
    if (!this.#hasOverflowed)
      return this.#finish({ kind: 'response', ...head, body: Buffer.concat(this.#chunks, this.#bytes) });
    this.#hasEnded = true;
    this.#endOverflow();
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.#fail(causeOf(error), error);
  }

  #mostBytes(): number {
    const canOverflow = this.#overflow && this.#head && isSuccess(this.#head.status);
    return canOverflow ? Math.max(this.#maxBytes, this.#overflow.maxBytes) : this.#maxBytes;
  }

  /** Nothing more is read while the overflow processes the last piece. */
  #spill(controller: Dispatcher.DispatchController): void {
    this.#hasOverflowed = true;
    if (this.#isSpilling) return;
    let busy: Promise<void> | undefined;
    while (busy === undefined && this.#chunks.length > 0)
      busy = this.#overflow?.add(this.#chunks.shift() ?? empty);
    if (busy === undefined) return;
    this.#isSpilling = true;
    controller.pause();
    void this.#resumeAfter(busy, controller);
  }

  async #resumeAfter(busy: Promise<void>, controller: Dispatcher.DispatchController): Promise<void> {
    try {
      await busy;
    } catch (error) {
      return this.#stop('not_kept', error instanceof Error ? error : new Error('not kept'));
    }
    this.#isSpilling = false;
    if (this.#done) return;
    this.#spill(controller);
    if (this.#isSpilling) return;
    controller.resume();
    this.#endOverflow();
  }

  #endOverflow(): void {
    if (!this.#hasEnded || this.#isSpilling || this.#head === undefined) return;
    this.#finish({ kind: 'response', ...this.#head, body: empty, hasOverflowed: true });
  }

  #tooLarge(): void {
    this.#stop('too_large', new Error(`The answer is longer than ${this.#mostBytes()} bytes`));
  }

  #stop(cause: HttpFailure, error: Error): void {
    this.#fail(cause, error);
    this.#controller?.abort(error);
  }

  #fail(cause: HttpFailure, error: Error): void {
    const head = this.#head && { head: this.#head };
    this.#finish({ kind: 'failed', cause, sent: this.#sent, ...head, error });
  }

  #finish(answer: HttpAnswer): void {
    if (this.#done) return;
    this.#done = true;
    clearTimeout(this.#timer);
    this.#resolve(answer);
  }
}

const empty = Buffer.alloc(0);

const causeByCode: Readonly<Record<string, HttpFailure>> = {
  UND_ERR_CONNECT_TIMEOUT: 'timeout',
  UND_ERR_HEADERS_OVERFLOW: 'too_large',
  UND_ERR_INVALID_ARG: 'invalid_request',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'connection',
  UND_ERR_DESTROYED: 'closed',
  UND_ERR_CLOSED: 'closed',
};

function causeOf(error: Error): HttpFailure {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  if (error instanceof errors.HTTPParserError)
    return code === 'HPE_INVALID_EOF_STATE' ? 'connection' : 'malformed';
  return causeByCode[code] ?? 'connection';
}
