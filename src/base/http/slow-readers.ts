import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { clientOf } from '../values/client-address.ts';
import { RefusedRequestError } from './request-bodies.ts';
import { addressOf } from './request-values.ts';

export interface ReaderBounds {
  /** A client that does not read all that waits for it is looked at after this long, … */
  readonly patienceMs: number;
  /** … and cut if it has read less; 0 cuts none. */
  readonly leastBytesPerSec: number;
  /** Of long answers that a client has not read. A further `GET` is refused; for any other answer its oldest one is cut. */
  readonly maxBytesOfClient: number;
  /** The same of all clients together: the oldest answer of the client with most of them is cut. */
  readonly maxBytes: number;
}

const mebibyte = 1_048_576;
const defaults: ReaderBounds = {
  patienceMs: 30_000,
  leastBytesPerSec: 0,
  maxBytesOfClient: 64 * mebibyte,
  maxBytes: 512 * mebibyte,
};
/** A longer answer is handed to its connection in such pieces, each once the one before was read. */
const pieceBytes = 65_536;
const longestMs = 900_000;

/** A connection whose client has not read all that was written. */
interface SlowRead {
  readonly sinceMs: number;
  readonly sentBytes: number;
}

/** A long answer that is being read. */
interface Held {
  readonly client: string;
  readonly bytes: number;
  readonly response: ServerResponse;
}

/**
 * Cuts clients that read their answers too slowly, and bounds the memory of unread answers: of every answer of an app. To refuse what can be
 * asked for again costs less than to cut: a client that opens a new connection for each that was cut has all of their buffers filled.
 */
export function boundReaders(app: FastifyInstance, changed: Partial<ReaderBounds>): void {
  const bounds = { ...defaults, ...changed };
  cutSlowReaders(app, bounds);
  // in the order in which they began
  const answers = new Set<Held>();
  const heldBytes = (client: string): number => {
    let sum = 0;
    for (const held of answers) if (held.client === client) sum += held.bytes;
    return sum;
  };
  const heldOfAll = (): number => [...answers].reduce((sum, { bytes }) => sum + bytes, 0);
  const largestClient = (): string => {
    const clients = [...new Set([...answers].map(({ client }) => client))];
    return clients.toSorted((a, b) => heldBytes(b) - heldBytes(a))[0] ?? '';
  };
  const cutOldest = (client: string): void => {
    const held = [...answers].find((one) => one.client === client);
    if (!held) return;
    answers.delete(held);
    held.response.destroy();
  };
  app.addHook('onSend', (request, reply, payload, done) => {
    const bytes = longBody(request, reply, payload);
    if (!bytes) return done(null, payload);
    const client = clientOf(addressOf(request));
    const held: Held = { client, bytes: bytes.length, response: reply.raw };
    const isTooMuch = (): boolean => {
      const ofClient = heldBytes(client);
      return ofClient > 0 && ofClient + held.bytes > bounds.maxBytesOfClient;
    };
    if (request.method === 'GET' && isTooMuch())
      return done(new RefusedRequestError('too_many_attempts', bounds.patienceMs / 1_000));
    while (isTooMuch()) cutOldest(client);
    while (answers.size > 0 && heldOfAll() + held.bytes > bounds.maxBytes) cutOldest(largestClient());
    answers.add(held);
    reply.raw.once('close', () => answers.delete(held));
    reply.header('content-length', String(bytes.length));
    done(null, inPieces(bytes));
  });
}

/** Ends an answer that lasts too long, such as a download that keeps a place for which others wait. */
export function endInTime(response: ServerResponse, afterMs = longestMs): void {
  const timer = setTimeout(() => void response.destroy(), afterMs);
  response.once('close', () => clearTimeout(timer));
}

function longBody(request: FastifyRequest, reply: FastifyReply, payload: unknown): Buffer | undefined {
  if (request.method === 'HEAD' || reply.statusCode === 304) return undefined;
  // a character has three bytes at most
  if (typeof payload === 'string' && payload.length > pieceBytes / 3) {
    const bytes = Buffer.from(payload);
    return bytes.length > pieceBytes ? bytes : undefined;
  }
  return Buffer.isBuffer(payload) && payload.length > pieceBytes ? payload : undefined;
}

/** The pieces share the bytes: none is copied. */
function inPieces(bytes: Buffer): Readable {
  let at = 0;
  return new Readable({
    highWaterMark: pieceBytes,
    read() {
      this.push(bytes.subarray(at, at + pieceBytes));
      at += pieceBytes;
      if (at >= bytes.length) this.push(null);
    },
  });
}

function cutSlowReaders(app: FastifyInstance, { patienceMs, leastBytesPerSec }: ReaderBounds): void {
  const open = new Map<Socket, SlowRead | undefined>();
  app.server.on('connection', (socket: Socket) => {
    open.set(socket, undefined);
    socket.once('close', () => open.delete(socket));
  });
  const look = (): void => {
    const nowMs = performance.now();
    for (const [socket, slow] of open) {
      if (socket.writableLength === 0) {
        if (slow) open.set(socket, undefined);
        continue;
      }
      const sentBytes = socket.bytesWritten - socket.writableLength;
      const passedMs = nowMs - (slow?.sinceMs ?? nowMs);
      if (slow && passedMs < patienceMs) continue;
      const isSlow = slow && sentBytes - slow.sentBytes < (leastBytesPerSec * passedMs) / 1_000;
      if (isSlow) socket.destroy();
      else open.set(socket, { sinceMs: nowMs, sentBytes });
    }
  };
  const timer = setInterval(look, patienceMs / 10);
  timer.unref();
  app.addHook('onClose', (_app, done) => {
    clearInterval(timer);
    done();
  });
}
