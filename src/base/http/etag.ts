import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** A body with the name of its content; as bytes, if one copy is sent to all. */
export interface TaggedFile {
  readonly body: string | Buffer;
  readonly type: string;
  readonly etag: string;
  /** The same body compressed, the smallest first. */
  readonly compressed?: readonly { readonly coding: string; readonly body: Buffer }[];
}

/** Hashes a body: once, if it stays the same. */
export function withTag({ body, type }: { readonly body: string; readonly type: string }): TaggedFile {
  const hash = createHash('sha256').update(body).digest('base64url').slice(0, 22);
  return { body, type, etag: `"${hash}"` };
}

/** Compresses a body that many clients get; in other threads. */
export async function withCompressed(file: TaggedFile): Promise<TaggedFile> {
  // the highest quality takes eight times as long for a tenth less, and the first client waits for it
  const params = { [constants.BROTLI_PARAM_QUALITY]: 9 };
  const [br, gz] = await Promise.all([
    promisify(brotliCompress)(file.body, { params }),
    promisify(gzip)(file.body),
  ]);
  const compressed = [
    { coding: 'br', body: br },
    { coding: 'gzip', body: gz },
  ];
  // weak: the bytes differ with the coding
  return { ...file, etag: `W/${file.etag}`, compressed };
}

/** Sends a body, or 304 if the client has it already. */
export function sendTagged(request: FastifyRequest, reply: FastifyReply, file: TaggedFile): FastifyReply {
  const { etag } = file;
  reply.header('etag', etag).header('cache-control', 'no-cache');
  if (matches(request.headers['if-none-match'], etag)) return varying(reply, file).code(304).send();
  return sendBody(request, reply, file);
}

/** Sends a body in the first coding that the client takes. */
export function sendBody({ headers }: FastifyRequest, reply: FastifyReply, file: TaggedFile): FastifyReply {
  const { body, type, compressed = [] } = file;
  varying(reply, file).type(`${type}; charset=utf-8`);
  const taken = takenCodings(headers['accept-encoding']);
  const chosen = compressed.find(({ coding }) => taken.has(coding));
  return chosen ? reply.header('content-encoding', chosen.coding).send(chosen.body) : reply.send(body);
}

/** For caches: a file with codings differs with what the client takes, and so does its 304. */
function varying(reply: FastifyReply, { compressed = [] }: TaggedFile): FastifyReply {
  return compressed.length > 0 ? reply.header('vary', 'Accept-Encoding') : reply;
}

/** Those with a weight of zero are refused. */
function takenCodings(header: string | string[] | undefined): ReadonlySet<string> {
  const named = [header ?? []].flat().join(',').toLowerCase().split(',');
  return new Set(
    named.filter((one) => !/;\s*q=0(?:\.0*)?\s*$/.test(one)).map((one) => one.split(';', 1)[0]?.trim() ?? ''),
  );
}

function matches(header: string | undefined, etag: string): boolean {
  return (
    header !== undefined &&
    header.split(',').some((tag) => ['*', etag.replace('W/', '')].includes(tag.trim().replace('W/', '')))
  );
}
