import { once } from 'node:events';
import http, { type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { boundPort } from '../../src/devnet/ports.ts';

export interface Exchange {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** Resolves when the asker has its answer, or is gone. */
  readonly over: Promise<unknown>;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** What follows the body, where the headers announce it. */
  readonly trailers?: NodeJS.Dict<string[]>;
  /** The body is sent in pieces with pauses between them; left out, as a whole. */
  readonly pieces?: Pieces;
}

export interface Pieces {
  readonly pauseMs: number;
  /** The answer says its length, unless something follows its body. */
  readonly isSized?: boolean;
  /** Before the second half of the pieces; the connection is cut if it resolves to false. */
  readonly midway: () => Promise<boolean>;
}

/** What the asker gets: an answer, or a connection that is cut. */
export type Reply = Answer | 'cut';

export interface HttpProxy {
  readonly url: string;
  /** Exchanges under way, those included whose askers are gone. */
  readonly pending: () => number;
  close(): Promise<void>;
}

/** @param forward sends the request to its peer, or the same one with another body */
export type Behave = (exchange: Exchange, forward: (body?: Buffer) => Promise<Answer>) => Promise<Reply>;

const passedOn = ['content-type', 'retry-after', 'x-price', 'trailer'] as const;

/** A proxy in front of a peer. Whole requests go through it: what it does to them, `behave` decides. */
export async function startHttpProxy(target: () => string, behave: Behave): Promise<HttpProxy> {
  const agent = new http.Agent({ keepAlive: true });
  let pending = 0;

  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = 'GET', url: path = '/', headers } = request;
    const over = new Promise((resolve) => response.once('close', resolve));
    const exchange = { method, path, headers, body: Buffer.concat(await request.toArray()), over };
    const reply = await behave(exchange, (changed = exchange.body) =>
      send(agent, target(), { ...exchange, body: changed }),
    );
    if (reply === 'cut') return void request.socket.destroy();
    const { headers: said, trailers = {} } = reply;
    const isSized = reply.pieces?.isSized && said.trailer === undefined;
    response.writeHead(reply.status, {
      ...Object.fromEntries(passedOn.flatMap((name) => (said[name] ? [[name, said[name]]] : []))),
      ...(isSized && { 'content-length': reply.body.length }),
    });
    const end = (last?: Buffer): void => {
      if (said.trailer !== undefined)
        response.addTrailers(
          Object.entries(trailers).flatMap(([name, values = []]) =>
            values.map((value): [string, string] => [name, value]),
          ),
        );
      response.end(last);
    };
    if (reply.pieces) return sendPieces(response, reply.body, reply.pieces, end);
    end(reply.body);
  };
  const server = http.createServer((request, response) => {
    pending++;
    serve(request, response)
      // its asker is gone, or the peer is
      .catch(() => request.socket.destroy())
      .finally(() => pending--);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${boundPort(server)}`,
    pending: () => pending,
    async close() {
      if (!server.listening) return;
      agent.destroy();
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

const pieceCount = 6;

async function sendPieces(
  response: ServerResponse,
  body: Buffer,
  { pauseMs, midway }: Pieces,
  end: () => void,
): Promise<void> {
  const bytes = Math.ceil(body.length / pieceCount);
  for (let piece = 0; piece < pieceCount && !response.destroyed; piece++) {
    if (piece === pieceCount >> 1 && !(await midway())) return void response.destroy();
    response.write(body.subarray(piece * bytes, (piece + 1) * bytes));
    await sleep(pauseMs);
  }
  end();
}

const ownHeaders = new Set(['host', 'connection', 'transfer-encoding', 'content-length', 'keep-alive']);

/** Rejects if the peer gives no whole answer. */
async function send(
  agent: http.Agent,
  target: string,
  { method, path, headers, body }: Exchange,
): Promise<Answer> {
  const kept = Object.entries(headers).filter(([name]) => !ownHeaders.has(name));
  const request = http.request(target + path, {
    method,
    agent,
    headers: { ...Object.fromEntries(kept), 'content-length': body.length },
  });
  request.end(body);
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request.once('response', resolve).once('error', reject);
  });
  const whole = Buffer.concat(await response.toArray());
  const { statusCode: status = 502, headersDistinct, trailersDistinct: trailers } = response;
  return { status, headers: { ...response.headers, ...repeated(headersDistinct) }, body: whole, trailers };
}

/** Headers that are there several times, which `headers` has as one. */
function repeated(distinct: NodeJS.Dict<string[]>): NodeJS.Dict<string[]> {
  return Object.fromEntries(Object.entries(distinct).filter(([, values = []]) => values.length > 1));
}

export function jsonAnswer(value: unknown): Answer {
  return answerOf(200, 'application/json', JSON.stringify(value));
}

export function answerOf(status: number, type: string, body = ''): Answer {
  return { status, headers: { 'content-type': type }, body: Buffer.from(body) };
}
