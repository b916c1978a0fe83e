import type { FastifyReply } from 'fastify';
import type { Header } from '../rules/route-headers.ts';
import type { WholeAnswer } from '../use-cases/routes/route-request.ts';

/** Sets status and headers of an upstream's answer. What comes several times comes several times to the client; Fastify adds to Set-Cookie by itself. */
export function setHead(
  reply: FastifyReply,
  { status, headers }: { readonly status: number; readonly headers: readonly Header[] },
): void {
  reply.code(status);
  for (const [name, value] of headers) {
    const before = reply.getHeader(name);
    const isList = before !== undefined && name === 'link';
    reply.header(name, isList ? [before, value].flat().map(String) : value);
  }
}

/** Sends an upstream's own answer for which nothing is charged. */
export function sendPassedOn(reply: FastifyReply, answer: WholeAnswer): FastifyReply {
  setHead(reply, answer);
  return reply.send(answer.body);
}
