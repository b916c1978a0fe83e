import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** Sends a body, or 304 if the client has it already. */
export function sendTagged(
  request: FastifyRequest,
  reply: FastifyReply,
  { body, type }: { readonly body: string; readonly type: string },
): FastifyReply {
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
  reply.header('etag', etag).header('cache-control', 'no-cache');
  if (matches(request.headers['if-none-match'], etag)) return reply.code(304).send();
  return reply.type(`${type}; charset=utf-8`).send(body);
}

function matches(header: string | undefined, etag: string): boolean {
  return (
    header !== undefined && header.split(',').some((tag) => ['*', etag, `W/${etag}`].includes(tag.trim()))
  );
}
