import type { FastifyReply } from 'fastify';

/** Aborts when the connection of a request is closed: its client has left, or has its whole answer. */
export function leftSignal(reply: FastifyReply): AbortSignal {
  const left = new AbortController();
  reply.raw.once('close', () => left.abort());
  return left.signal;
}
