import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import {
  licencesOf,
  lockfileFaults,
  type Lockfile,
  type Manifest,
  productionPackages,
} from '../../scripts/lockfile.ts';
import { readPage, root } from '../support/pages.ts';

const read = (file: string): unknown => JSON.parse(readFileSync(path.join(root, file), 'utf8'));
const lockfile = read('package-lock.json') as Lockfile;
const manifest = read('package.json') as Manifest;

test('every package is locked by its hash, comes from the registry, and runs an install script only if it is named', () => {
  expect(lockfileFaults(lockfile, manifest)).toEqual([]);
});

test.each([
  ['no hash', { integrity: '' }, 'one has no SHA-512 integrity'],
  ['a weak hash', { integrity: 'sha1-aaaa' }, 'one has no SHA-512 integrity'],
  ['another source', { resolved: 'git+ssh://git@example.org/one.git' }, 'one does not come from'],
  ['an install script that is not named', { hasInstallScript: true }, 'one runs a script'],
])('a package with %s is found', (_, change, message) => {
  const integrity = `sha512-${'a'.repeat(86)}==`;
  const packages = { '': {}, 'node_modules/one': { integrity, ...change } };
  expect(lockfileFaults({ packages }, { allowScripts: {} })).toEqual([expect.stringContaining(message)]);
});

test('an allowed script of a package that is gone is found', () => {
  expect(lockfileFaults({ packages: {} }, { allowScripts: { gone: true } })).toEqual([
    'allowScripts names gone, which has no install script',
  ]);
});

test('every licence of production permits use in a closed product, and the docs state the number of packages', () => {
  const permissive =
    /^\(?(?:MIT|MIT-0|ISC|0BSD|Apache-2\.0|BSD-[23]-Clause|CC0-1\.0|Unlicense|MPL-2\.0|MIT OR (?:Apache-2\.0|CC0-1\.0)|Apache-2\.0 AND BSD-3-Clause)\)?$/;
  expect([...licencesOf(lockfile).keys()].filter((licence) => !permissive.test(licence))).toEqual([]);
  const { required, optional } = productionPackages(lockfile);
  const { text } = readPage('docs/supply-chain.md');
  expect(text).toContain(`| \`tollbook\` | ${required.length} | ${optional.length} |`);
});
