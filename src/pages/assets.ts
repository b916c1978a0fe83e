import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { FastifyInstance } from 'fastify';
import { sendTagged } from '../http/jobs/etag.ts';

const types = {
  'pages.css': 'text/css',
  'pages.js': 'text/javascript',
  'icon.svg': 'image/svg+xml',
} as const;

type Name = keyof typeof types;

/** The files beside the pages. */
export interface Assets {
  /** The address of a file, which changes with its content. */
  href(name: Name): string;
  readonly routes: (app: FastifyInstance) => Promise<void>;
}

export async function readAssets(): Promise<Assets> {
  const names = Object.keys(types) as Name[];
  const texts = new Map<Name, string>();
  for (const name of names)
    texts.set(name, await readFile(new URL(`assets/${name}`, import.meta.url), 'utf8'));
  const versionOf = (name: Name): string =>
    createHash('sha256')
      .update(texts.get(name) ?? '')
      .digest('base64url')
      .slice(0, 12);
  const versions = new Map(names.map((name) => [name, versionOf(name)]));
  return {
    href: (name) => `/assets/${name}?v=${versions.get(name) ?? ''}`,
    routes: async (app) => {
      for (const name of names) {
        app.get<{ Querystring: { v?: unknown } }>(`/assets/${name}`, async (request, reply) => {
          const file = { body: texts.get(name) ?? '', type: types[name] };
          reply.header('cross-origin-resource-policy', 'same-origin');
          // during an upgrade a gateway of another version may be asked
          if (request.query.v !== versions.get(name)) return sendTagged(request, reply, file);
          reply.header('cache-control', 'public, max-age=31536000, immutable');
          return reply.type(`${file.type}; charset=utf-8`).send(file.body);
        });
      }
    },
  };
}
