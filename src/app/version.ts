import { readFileSync } from 'node:fs';

/** The version of this program, from the package that it is in. */
export function programVersion(): string {
  // two directories up from src/app/ in the repository, and from dist/app/ in the published package
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { readonly version: string }).version;
}
