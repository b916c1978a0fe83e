import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { configReference } from '../../../src/base/config/reference.ts';
import { jobsTables, tables } from '../../../src/base/config/root.ts';
import { tollbook } from '../../support/program.ts';

const reference = configReference();
const keys = reference.flatMap((table) => table.keys.map((key) => ({ ...key, header: table.header })));

const of = (header: string, name: string) => keys.find((key) => key.header === header && key.name === name);

test('the reference has every table of the file, and of every key what it means', () => {
  const listed = new Set(reference.flatMap(({ header }) => /^\[+([a-z_]+)/.exec(header)?.[1] ?? []));
  expect([...listed].toSorted()).toEqual(Object.keys({ ...jobsTables, ...tables }).toSorted());
  expect(keys.filter(({ meaning }) => meaning === '').map(({ header, name }) => [header, name])).toEqual([]);
});

test('a file has at most 200 keys', () => {
  expect(keys.length).toBeLessThanOrEqual(200);
});

test('the reference shows type, default and reload of a key as the schema has them', () => {
  expect(of('', 'quote_ttl_secs')).toMatchObject({
    type: '10 to 86,400',
    byDefault: '300',
    isReloadable: true,
    isRequired: false,
  });
  expect(of('[[runners]]', 'services')).toMatchObject({ isRequired: true, byDefault: undefined });
  expect(of('[[runners]]', 'token')?.type).toBe('secret, or two');
  expect(of('[limits]', 'max_body_bytes')?.byDefault).toBe('1_048_576');
});

test('docs/configuration-reference.md is what `tollbook config reference` prints', async () => {
  const { code, stdout } = await tollbook(['config', 'reference']);
  expect(code).toBe(0);
  expect(await readFile('docs/configuration-reference.md', 'utf8')).toBe(stdout);
});
