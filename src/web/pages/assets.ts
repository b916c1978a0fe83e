import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { FastifyInstance } from 'fastify';
import { sendTagged, withTag } from '../../base/http/etag.ts';

const types = {
  'pages.css': 'text/css',
  'pages.js': 'text/javascript',
  'amounts.js': 'text/javascript',
  'wallet.js': 'text/javascript',
  'payment.js': 'text/javascript',
  'pay-form.js': 'text/javascript',
  'try.js': 'text/javascript',
  'jobs.js': 'text/javascript',
  'credit.js': 'text/javascript',
  'console.css': 'text/css',
  'console.js': 'text/javascript',
  'proof.js': 'text/javascript',
  'overview.js': 'text/javascript',
  'refund.js': 'text/javascript',
  'passkey.js': 'text/javascript',
  'icon.svg': 'image/svg+xml',
} as const;

/** Later files may import earlier ones. */
export type AssetName = keyof typeof types;

/** The static files of the pages. */
export interface Assets {
  /** The address of a file, which changes with its content. */
  href(name: AssetName): string;
  readonly routes: (app: FastifyInstance) => Promise<void>;
}

export async function readAssets(): Promise<Assets> {
  const names = Object.keys(types) as AssetName[];
  const texts = new Map<AssetName, string>();
  const versionOf = (name: AssetName): string =>
    createHash('sha256')
      .update(texts.get(name) ?? '')
      .digest('base64url')
      .slice(0, 12);
  const versions = new Map<string, string>();
  const href = (name: string): string => `/assets/${name}?v=${versions.get(name) ?? ''}`;
  for (const name of names) {
    const text = await readFile(new URL(`assets/${name}`, import.meta.url), 'utf8');
    // a module is imported by the address that changes with its content, as pages import it
    texts.set(
      name,
      text.replaceAll(/(?<=from ')\.\/([\w-]+\.js)(?=';)/g, (_, imported: string) => href(imported)),
    );
    versions.set(name, versionOf(name));
  }
  return {
    href,
    routes: async (app) => {
      for (const name of names) {
        const file = withTag({ body: texts.get(name) ?? '', type: types[name] });
        app.get<{ Querystring: { v?: unknown } }>(`/assets/${name}`, async (request, reply) => {
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
