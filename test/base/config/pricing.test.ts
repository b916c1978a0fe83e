import { chmodSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { ConfigError, formatMistake } from '../../../src/base/config/mistakes.ts';
import { loadPricing } from '../../../src/base/config/pricing.ts';
import { rootShape } from '../../../src/base/config/root.ts';
import { devnetKeys } from '../../../src/devnet/accounts.ts';
import { temporaryFolder } from '../../support/program.ts';

const env = { TOLLBOOK_OPERATOR_KEY: devnetKeys.payer };
const prices = '[job_prices.1]\n0 = "256"\n';

function write(text: string, name = 'gateway.toml'): string {
  const file = path.join(temporaryFolder(), name);
  writeFileSync(file, text, { mode: 0o600 });
  return file;
}

const read = new Set(['log_level', 'job_prices', 'job_prices_file']);
const others = Object.keys(rootShape).filter((key) => !read.has(key));

test('a pricing service ignores every key of a gateway but the prices and log_level, whatever it has', async () => {
  expect(others).toEqual(
    expect.arrayContaining(['facilitator_url', 'accepted_tokens', 'networks', 'job_policies']),
  );
  const alone = await loadPricing(write(prices), env, undefined);
  const wrong = others.map((key) => `${key} = { url = "http://127.0.0.1:1", nothing = [1.5] }\n`);
  const wrongs = [...wrong, wrong.join(''), 'no_key_of_ours = 1\n'].map((line) => line + prices);
  for (const text of [...wrongs, `${prices}[[accepted_tokens]]\nnetwork = 7\n`])
    expect(await loadPricing(write(text), env, undefined)).toEqual(alone);
});

const refusedKeys: [string, string, RegExp][] = [
  ['a key without 0x', devnetKeys.payer.slice(2), /has no private key/],
  ['a key that is too short', devnetKeys.payer.slice(0, -1), /has no private key/],
  ['zero', `0x${'0'.repeat(64)}`, /has no private key/],
  [
    'the order of the curve',
    '0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141',
    /has no private key/,
  ],
  ['words', 'test test test test test test test test test test test junk', /has no private key/],
  ['nothing', '', /has no private key/],
  ['two keys', `${devnetKeys.payer}\n${devnetKeys.payer}`, /has no private key/],
];

test.each(refusedKeys)('a key file with %s is refused without a word of it', async (_, text, words) => {
  const key = write(text, 'operator.key');
  const refused = await loadPricing(write(prices), {}, key).catch((error: unknown) => error);
  if (!(refused instanceof ConfigError)) throw new Error('it was loaded');
  expect(refused.mistakes).toHaveLength(1);
  const message = refused.mistakes.map(formatMistake).join('\n');
  expect(message).toMatch(words);
  expect(message).toContain(key);
  expect(`${message}\n${refused.stack}`).not.toContain(text.slice(2, 20) || devnetKeys.payer);
});

test('a key file that is missing, a folder or named twice is refused; one with spaces or capitals around the key is read', async () => {
  const config = write(prices);
  const folder = path.dirname(config);
  for (const [vars, file, words] of [
    [{}, path.join(folder, 'none.key'), 'cannot be read: there is no such file'],
    [{}, folder, 'cannot be read: EISDIR'],
    [{ TOLLBOOK_OPERATOR_KEY_FILE: path.join(folder, 'none.key') }, undefined, 'which cannot be read'],
    [{ ...env, TOLLBOOK_OPERATOR_KEY_FILE: config }, undefined, 'is set, and so is TOLLBOOK_OPERATOR_KEY'],
  ] as const)
    await expect(loadPricing(config, vars, file)).rejects.toThrow(words);
  const key = write(` ${devnetKeys.payer.toUpperCase().replace('X', 'x')}\r\n`, 'operator.key');
  expect(await loadPricing(config, {}, key)).toMatchObject({ operatorKey: devnetKeys.payer, warnings: [] });
});

test('a key file that every user can read is warned of', async () => {
  const key = write(devnetKeys.payer, 'operator.key');
  chmodSync(key, 0o644);
  const warnings = [`${key}  can be read by every user of this machine: run chmod 600 on it`];
  expect(await loadPricing(write(prices), {}, key)).toMatchObject({ warnings });
  const vars = { TOLLBOOK_OPERATOR_KEY_FILE: key };
  expect(await loadPricing(write(prices), vars, undefined)).toMatchObject({ warnings });
});
