import { createHash } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { once } from '../runtime/once.ts';
import { sendBody, sendTagged, withCompressed, withTag } from './etag.ts';

/** A file that stays the same while the program runs. */
export interface StaticFile {
  /** Its address, which changes with its content: browsers keep it for a year. */
  readonly href: string;
  serve(app: FastifyInstance): void;
}

export function staticFile(
  path: string,
  content: { readonly body: string; readonly type: string },
): StaticFile {
  const version = createHash('sha256').update(content.body).digest('base64url').slice(0, 12);
  const file = once(() => withCompressed(withTag(content)));
  return {
    href: `${path}?v=${version}`,
    serve(app) {
      app.get<{ Querystring: { v?: unknown } }>(path, async (request, reply) => {
        reply.header('cross-origin-resource-policy', 'same-origin');
        // during an upgrade a gateway of another version may be asked
        if (request.query.v !== version) return sendTagged(request, reply, await file());
        reply.header('cache-control', 'public, max-age=31536000, immutable');
        return sendBody(request, reply, await file());
      });
    },
  };
}
