import { once } from 'node:events';
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http';
import { boundPort } from './ports.ts';

/** Where a service of the devnet listens. */
export interface ListenOptions {
  /** Default: 127.0.0.1. */
  readonly host?: string;
  /** 0 or left out means any free port. */
  readonly port?: number;
}

export interface HttpService {
  /** Without a path. */
  readonly url: string;
  /** Stops listening and cuts open requests. */
  readonly close: () => Promise<void>;
}

/** A status and a JSON value to answer with. */
export interface Answer {
  readonly status: number;
  readonly value: unknown;
}

/** Thrown by a handler to answer with this error. */
export class HttpProblem extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/**
 * Serves one handler; an error that it throws becomes a JSON error with status 500, or the problem's own.
 * @throws when the port is taken
 */
export function listen(
  handle: (request: IncomingMessage) => Promise<Answer>,
  options: ListenOptions,
): Promise<HttpService> {
  return serve(
    async (request, response) => send(response, await handle(request).catch(problemAnswer)),
    options,
  );
}

/**
 * Serves one handler that writes its answers itself, as it likes: it may stream, wait, or drop the connection. What
 * it throws is not caught.
 * @throws when the port is taken
 */
export async function serve(
  handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>,
  { host = '127.0.0.1', port = 0 }: ListenOptions,
): Promise<HttpService> {
  const server = createServer((request, response) => void handle(request, response));
  server.listen(port, host);
  await once(server, 'listening');
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${boundPort(server)}`,
    close: async () => {
      if (!server.listening) return;
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

/**
 * Reads a request's body.
 * @throws HttpProblem 413 beyond `maxBytes`
 */
export async function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  // The rest of a body that is too long is read and dropped, so that the client gets to read the answer.
  for await (const chunk of request as AsyncIterable<Buffer>) {
    sizeBytes += chunk.length;
    if (sizeBytes <= maxBytes) chunks.push(chunk);
    else chunks.length = 0;
  }
  if (sizeBytes > maxBytes) throw new HttpProblem(413, `the body is longer than ${maxBytes} bytes`);
  return Buffer.concat(chunks);
}

function problemAnswer(error: unknown): Answer {
  const message = error instanceof Error ? error.message : String(error);
  return { status: error instanceof HttpProblem ? error.status : 500, value: { error: message } };
}

function send(response: ServerResponse, { status, value }: Answer): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
}
