import { readFile } from 'node:fs/promises';
import type { FastifyInstance } from 'fastify';
import { type StaticFile, staticFile } from '../../base/http/static-file.ts';

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
  const files = new Map<string, StaticFile>();
  const href = (name: string): string => files.get(name)?.href ?? '';
  for (const name of names) {
    const text = await readFile(new URL(`assets/${name}`, import.meta.url), 'utf8');
    // a module is imported by the address that changes with its content, as pages import it
    const body = text.replaceAll(/(?<=from ')\.\/([\w-]+\.js)(?=';)/g, (_, imported: string) =>
      href(imported),
    );
    files.set(name, staticFile(`/assets/${name}`, { body, type: types[name] }));
  }
  return { href, routes: async (app) => files.forEach((file) => file.serve(app)) };
}
