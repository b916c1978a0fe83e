import type { FastifyReply } from 'fastify';
import type { Header } from '../rules/route-headers.ts';
import type { WholeAnswer } from '../use-cases/routes/route-request.ts';

/** Sets status and headers of an upstream's answer. What comes several times comes several times to the client. */
export function setHead(
  reply: FastifyReply,
  { status, headers }: { readonly status: number; readonly headers: readonly Header[] },
): void {
  reply.code(status);
  for (const [name, values] of Map.groupBy(headers, ([known]) => known)) {
    const all = values.map(([, value]) => value);
    const own = name === 'link' ? [reply.getHeader(name) ?? []].flat().map(String) : [];
    const [first = '', ...more] = [...own, ...all];
    reply.header(name, more.length === 0 ? first : [first, ...more]);
  }
}

/** Sends an upstream's own answer for which nothing is charged. */
export function sendPassedOn(reply: FastifyReply, answer: WholeAnswer): FastifyReply {
  setHead(reply, answer);
  return reply.send(answer.body);
}
