import type { FastifyReply } from 'fastify';

// made once: each new one captures a stack trace
const isClosed = new DOMException('the connection of the request is closed', 'AbortError');

/** Aborts when the connection of a request is closed: its client has left, or has its whole answer. */
export function leftSignal(reply: FastifyReply): AbortSignal {
  const left = new AbortController();
  reply.raw.once('close', () => left.abort(isClosed));
  return left.signal;
}
