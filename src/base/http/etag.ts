import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** A body with the name of its content; as bytes, if one copy is sent to all. */
export interface TaggedFile {
  readonly body: string | Buffer;
  readonly type: string;
  readonly etag: string;
}

/** Hashes a body: once, if it stays the same. */
export function withTag({ body, type }: { readonly body: string; readonly type: string }): TaggedFile {
  const hash = createHash('sha256').update(body).digest('base64url').slice(0, 22);
  return { body, type, etag: `"${hash}"` };
}

/** Sends a body, or 304 if the client has it already. */
export function sendTagged(
  request: FastifyRequest,
  reply: FastifyReply,
  { body, type, etag }: TaggedFile,
): FastifyReply {
  reply.header('etag', etag).header('cache-control', 'no-cache');
  if (matches(request.headers['if-none-match'], etag)) return reply.code(304).send();
  return reply.type(`${type}; charset=utf-8`).send(body);
}

function matches(header: string | undefined, etag: string): boolean {
  return (
    header !== undefined && header.split(',').some((tag) => ['*', etag, `W/${etag}`].includes(tag.trim()))
  );
}
