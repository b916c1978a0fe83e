import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { RunnerError } from './errors.ts';
import type { Teller } from './hooks.ts';
import { type PushAnswer, type PushRequest, problem } from './push.ts';

export interface ListenOptions {
  /** What the gateway's configuration names as this runner's token. */
  readonly secret: string;
  /** 0, the default, is any free port. */
  readonly port?: number | undefined;
  /** Default 127.0.0.1: the machine itself. `::` is everywhere. */
  readonly host?: string | undefined;
  /** The one path that takes calls. Default: every path does. */
  readonly path?: string | undefined;
  /** Of a call. Default 1 MiB, as the gateway's. */
  readonly maxBodyBytes?: number | undefined;
}

/** A server that takes pushed calls. */
export interface Listening {
  readonly port: number;
  /** Without a path. */
  readonly url: string;
}

export interface PushServer extends Listening {
  /** Takes no new connections, and resolves when every request is answered: then none is left. */
  close(): Promise<void>;
  /** Answers nothing more. */
  cut(): void;
}

interface ServerParts {
  readonly answer: (request: PushRequest) => Promise<PushAnswer>;
  readonly isStopping: () => boolean;
  readonly tell: Teller;
}

const defaultMaxBodyBytes = 1_048_576;

/** @throws if the address is taken */
export async function startPushServer(options: ListenOptions, parts: ServerParts): Promise<PushServer> {
  const { port = 0, host = '127.0.0.1' } = options;
  let underWay = 0;
  let onQuiet: (() => void) | undefined;
  const server = createServer(
    // longer than any gateway keeps a connection, so that no call meets one that is just being closed
    { requestTimeout: 30_000, headersTimeout: 20_000, keepAliveTimeout: 75_000 },
    (request, response) => {
      underWay += 1;
      response.once('close', () => {
        underWay -= 1;
        if (underWay === 0) onQuiet?.();
      });
      serve(request, options, parts).then(
        (answer) => send(response, answer, parts.isStopping()),
        (cause: unknown) => {
          // a client that vanished in the middle of its request has nothing to read
          if (!request.destroyed || request.complete)
            parts.tell.error(new RunnerError('runner_failed', 'a call could not be answered', { cause }));
          response.destroy();
        },
      );
    },
  );
  server.listen(port, host);
  await once(server, 'listening');
  server.on('error', (cause) => parts.tell.error(new RunnerError('server_failed', cause.message, { cause })));
  const address = server.address();
  const bound = typeof address === 'object' && address ? address.port : port;
  return {
    port: bound,
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      await new Promise<void>((resolve) => {
        onQuiet = resolve;
        if (underWay === 0) resolve();
      });
      // connections without a request, which may stay silent for long
      server.closeAllConnections();
      await closed;
    },
    cut: () => server.closeAllConnections(),
  };
}

async function serve(
  request: IncomingMessage,
  { path, maxBodyBytes = defaultMaxBodyBytes }: ListenOptions,
  { answer, tell }: ServerParts,
): Promise<PushAnswer> {
  const { method, url = '/', headers } = request;
  const refuse = (status: number, code: string, message: string): PushAnswer => {
    tell.error(new RunnerError('request_refused', `${method ?? ''} ${url.slice(0, 200)}: ${message}`));
    return problem(status, code, message);
  };
  if (path !== undefined && url.split('?', 1)[0] !== path)
    return refuse(404, 'not_found', `calls go to ${path}`);
  if (method !== 'POST') return refuse(405, 'method_not_allowed', 'calls are posted');
  const body = await readBody(request, maxBodyBytes);
  if (!body) return refuse(413, 'body_too_large', `the call is longer than ${maxBodyBytes} bytes`);
  return answer({ headers, body });
}

/** Undefined if it is too long: the rest is read and dropped, so that the answer can be read. */
async function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    sizeBytes += chunk.length;
    if (sizeBytes <= maxBytes) chunks.push(chunk);
    else chunks.length = 0;
  }
  return sizeBytes > maxBytes ? undefined : Buffer.concat(chunks);
}

function send(response: ServerResponse, { status, headers, body }: PushAnswer, isLast: boolean): void {
  const length = status === 204 ? {} : { 'content-length': String(body.length) };
  response.writeHead(status, { ...headers, ...length, ...(isLast ? { connection: 'close' } : {}) });
  response.end(body);
}
