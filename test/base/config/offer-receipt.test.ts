import { expect, test } from 'vitest';
import { env, minimal, mistakesIn, parse } from './support.ts';

const key = '5e'.repeat(32);
const variables = {
  ...env,
  OFFER_KEY: key,
  SECOND: `0x${'6F'.repeat(32)}`,
  ZERO: '0'.repeat(64),
  TEXT: 'a-key',
};
const table = (lines: string): string => `${minimal()}[offer_receipt]\n${lines}`;
const jobsOf = async (text: string, files = {}) => (await parse(text, files, variables)).config.jobs;
const wrong = (lines: string) => mistakesIn(table(lines), {}, variables);

test('offers and receipts are signed only if the file has [offer_receipt], with keys of 32 bytes from the environment or a file', async () => {
  expect((await jobsOf(minimal()))?.offerReceipt).toBeUndefined();
  const both = table('format = "jws"\nkey = ["env:OFFER_KEY", "env:SECOND"]');
  expect((await jobsOf(both))?.offerReceipt).toEqual({
    format: 'jws',
    keys: [`0x${key}`, `0x${'6f'.repeat(32)}`],
  });
  const file = table('format = "eip712"\nkey = "file:k"');
  expect((await jobsOf(file, { 'conf/k': `${key}\n` }))?.offerReceipt).toEqual({
    format: 'eip712',
    keys: [`0x${key}`],
  });
});

test('an invalid key is refused without being shown, and so is a table without a key or a format', async () => {
  const notKey = expect.stringMatching(/its key is not a private key: 32 bytes in hex/);
  expect(await wrong('format = "jws"\nkey = "env:TEXT"')).toEqual([notKey]);
  expect(await wrong('format = "eip712"\nkey = "env:ZERO"')).toEqual([notKey]);
  expect(await wrong('format = "jws"\nkey = ["env:OFFER_KEY", "env:TEXT"]')).toEqual([
    expect.stringContaining('its second key is not a private key'),
  ]);
  expect(await wrong('format = "jws"')).toEqual([expect.stringContaining('key: is missing')]);
  expect(await wrong('key = "env:OFFER_KEY"')).toEqual([expect.stringContaining('format: is missing')]);
  expect(await wrong('format = "es256"\nkey = "env:OFFER_KEY"')).toEqual([
    expect.stringContaining('must be "eip712" or "jws"'),
  ]);
  const all = await wrong('format = "jws"\nkey = "env:TEXT"');
  expect(all.join()).not.toContain('a-key');
});
