import type { FastifyReply } from 'fastify';
import type { AsOf } from '../use-cases/replicas.ts';

/** How old an answer is at most, where replicas answer: the last event that it surely shows, and when that was so. */
export function setAsOf(reply: FastifyReply, asOf: AsOf | undefined): FastifyReply {
  if (!asOf) return reply;
  return reply
    .header('tollbook-as-of', String(asOf.seq))
    .header('tollbook-as-of-time', asOf.at.toISOString());
}
