import { expect, test } from 'vitest';
import { parseConfig } from '../../../src/base/config/load.ts';
import { bare, minimal, mistakesIn, parse, parseX402 } from './support.ts';

const where = 'must be "env:NAME" or "file:/path", which say where the secret is';

test.each([
  '"sk-live-a-secret-that-was-pasted"',
  '"env:sk-live-a-secret-that-was-pasted"',
  '"env:"',
  '"file:"',
  '42',
  '["env:A"]',
])(
  'a secret that is %s is refused: the mistake says what to write, and never repeats the value',
  async (value) => {
    const [mistake, ...others] = await mistakesIn(bare(`[alerts]\npagerduty_key = ${value}`));
    expect(others).toEqual([]);
    expect(mistake).toBe(`4 alerts.pagerduty_key: ${where}, never the secret itself`);
  },
);

test.each([
  '"a-key-that-was-pasted-into-the-file"',
  '[]',
  '["env:A", "pasted"]',
  '["env:A", "env:B", "env:C"]',
])('a secret that can be replaced is refused as %s: it has one source, or two in a list', async (value) => {
  const text = minimal().replace('"env:RECEIPT_KEY"', value);
  expect(await mistakesIn(text)).toEqual([
    `4 receipt_key: ${where}, or a list of the one in use and a second one, never the secret itself`,
  ]);
});

test('a list has the secret in use and the one that is accepted as well, from variables and files', async () => {
  const text = minimal().replace('"env:RECEIPT_KEY"', '["file:/run/next", "env:RECEIPT_KEY"]');
  const files = { '/run/next': 'the-next-receipt-key-of-enough-length\n' };
  expect((await parseX402(text, files)).receiptKeys).toEqual([
    'the-next-receipt-key-of-enough-length',
    'a-receipt-key-of-thirty-two-chars',
  ]);
});

test('the same secret twice, and one of two that is missing, are mistakes at their places in the list', async () => {
  const twice = minimal().replace('"env:RECEIPT_KEY"', '["env:RECEIPT_KEY", "env:RECEIPT_KEY"]');
  expect(await mistakesIn(twice)).toEqual([
    '4 receipt_key: names the same secret twice: nothing would change',
  ]);
  const missing = minimal().replace('"env:RECEIPT_KEY"', '["env:RECEIPT_KEY", "env:NOT_SET"]');
  expect(await mistakesIn(missing)).toEqual([
    '4 receipt_key[1]: the environment variable NOT_SET is not set',
  ]);
});

test('no place of a secret is in the frozen configuration, only the secret', async () => {
  const { config } = await parse(minimal('facilitator_token = "env:FACILITATOR_TOKEN"'));
  const { facilitators, receiptKeys, quoteKeys, ...rest } = config.jobs ?? {};
  expect({ tokens: facilitators?.[0]?.tokens, receiptKeys, quoteKeys }).toEqual({
    tokens: ['secret'],
    receiptKeys: ['a-receipt-key-of-thirty-two-chars'],
    quoteKeys: ['a-key-of-quotes-of-thirty-two-chars'],
  });
  expect(Object.keys(rest)).not.toEqual(
    expect.arrayContaining([expect.stringMatching(/^(?:facilitatorToken|receiptKey|quoteKey)$/)]),
  );
});

const readFile = () => Promise.reject(new Error('no file is read'));

test('a check without secrets takes any secret for a good one, also those with their own form', async () => {
  const text = bare(`[alerts]
slack_url = "env:SLACK"
[traces]
endpoint = "http://127.0.0.1:4318"
headers = "env:HEADERS"
[jetstream]
servers = ["nats://127.0.0.1:4222"]
credentials = "env:SEED"
[[runners]]
services = [1]
mode = "jetstream"
token = ["env:A", "env:B"]
`);
  const loaded = await parseConfig(text, { file: 'x.toml', env: {}, readFile, withoutSecrets: true });
  expect(loaded.skippedSecrets.toSorted()).toEqual([
    'alerts.slack_url',
    'jetstream.credentials',
    'runners[0].token[0]',
    'runners[0].token[1]',
    'traces.headers',
  ]);
});
