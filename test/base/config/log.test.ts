import { expect, test } from 'vitest';
import { bare, env, mistakesIn, networks, parse } from './support.ts';

const seedHex = '0a'.repeat(32);
const variables = {
  ...env,
  LOG_KEY: seedHex,
  S3_SECRET: 'AKIA:a-secret-of-length',
  SHORT: 'AKIA-OF-TESTS:short',
  BARE: 'a-secret-without-its-id',
};
const log = (lines: string): string => bare(`[log]\norigin = "jobs.example/log"\n${lines}`);
const keyed = (lines = ''): string => log(`key = "env:LOG_KEY"\n${lines}`);
const of = async (text: string, files = {}) => (await parse(text, files, variables)).config.log;
const wrong = (text: string) => mistakesIn(text, {}, variables);
const bucket = (name: string) =>
  keyed(`[[log.anchors]]\nkind = "s3"\nlocation = "https://s3.example/abc"\nsecret = "env:${name}"`);

test('without [log] the ledger is not sealed', async () => {
  expect((await parse(bare(''))).config.log).toBeUndefined();
});

test('the signing key of [log] is read as hex or base64, from the environment or a file', async () => {
  const base64 = Buffer.from(seedHex, 'hex').toString('base64');
  const expected = {
    origin: 'jobs.example/log',
    seeds: [seedHex],
    sealEveryMs: 1_000,
    sealEveryEvents: 10_000,
    anchors: [],
  };
  expect(await of(keyed())).toEqual(expected);
  expect(await of(log('key = "file:k"'), { 'conf/k': `${base64}\n` })).toEqual(expected);
});

test('[log] accepts anchors of every kind', async () => {
  const text = keyed(`
[[log.anchors]]
kind = "folder"
location = "anchors"
[[log.anchors]]
kind = "webhook"
name = "auditor"
location = "https://auditor.example/hook"
every_ms = 50
[[log.anchors]]
kind = "s3"
location = "https://s3.example/the-bucket"
secret = "env:S3_SECRET"
[[log.anchors]]
kind = "chain"
network = "eip155:8453"
contract = "0x${'ab'.repeat(20)}"
secret = "file:anchor"
${networks}`);
  const files = { 'conf/anchor': `0x${'0B'.repeat(32)}\n` };
  expect((await of(text, files))?.anchors).toEqual([
    { kind: 'folder', name: 'anchor-1', everyMs: 10_000, folder: 'conf/anchors' },
    { kind: 'webhook', name: 'auditor', everyMs: 50, url: 'https://auditor.example/hook' },
    {
      kind: 's3',
      name: 'anchor-3',
      everyMs: 10_000,
      endpoint: 'https://s3.example',
      bucket: 'the-bucket',
      prefix: '',
      region: 'us-east-1',
      accessKeyId: 'AKIA',
      secretKey: 'a-secret-of-length',
    },
    {
      kind: 'chain',
      name: 'anchor-4',
      everyMs: 3_600_000,
      network: 'eip155:8453',
      chainId: 8453,
      rpcUrl: 'https://rpc.example',
      contract: `0x${'ab'.repeat(20)}`,
      privateKey: `0x${'0b'.repeat(32)}`,
    },
  ]);
});

const onChain = '[[log.anchors]]\nkind = "chain"\nnetwork = "eip155:8453"';

test.each([
  ['no key', log(''), /log\.key: is missing: say where it is/],
  ['no origin', bare('[log]\nkey = "env:LOG_KEY"'), /log\.origin: is missing/],
  [
    'an origin with a space',
    bare('[log]\norigin = "a b"\nkey = "env:LOG_KEY"'),
    /log\.origin: must name the log/,
  ],
  [
    'a folder without a folder',
    keyed('[[log.anchors]]\nkind = "folder"'),
    /anchors\[0\]\.location: is missing/,
  ],
  [
    'a chain without a contract',
    keyed(`${onChain}\nsecret = "env:LOG_KEY"`),
    /anchors\[0\]\.contract: is missing/,
  ],
  [
    'a chain without a key',
    keyed(`${onChain}\ncontract = "0x${'ab'.repeat(20)}"`),
    /anchors\[0\]\.secret: is missing: chain needs it/,
  ],
  [
    'a chain with an invalid key',
    keyed(`${onChain}\ncontract = "0x${'ab'.repeat(20)}"\nsecret = "env:LOG_KEY"`),
    /anchors\[0\]\.secret: names no private key/,
  ],
  [
    'a chain with a folder',
    keyed(`${onChain}\nlocation = "x"`),
    /anchors\[0\]\.location: would be ignored: chain does not have this key/,
  ],
  [
    'a bucket without a secret',
    keyed('[[log.anchors]]\nkind = "s3"\nlocation = "https://s3.example/abc"'),
    /secret: is missing/,
  ],
  [
    'a bucket whose secret is short',
    bucket('SHORT'),
    /secret: names a secret that must be ACCESS_KEY_ID:SECRET/,
  ],
  [
    'a bucket whose secret has no id',
    bucket('BARE'),
    /secret: names a secret that must be ACCESS_KEY_ID:SECRET/,
  ],
  [
    'a chain without an RPC',
    keyed(onChain),
    /network: has no RPC: \[\[networks\]\] does not name eip155:8453/,
  ],
  [
    'a key of another kind of anchor',
    keyed('[[log.anchors]]\nkind = "folder"\nlocation = "a"\nregion = "abc"'),
    /region: would be ignored/,
  ],
  [
    'two anchors with one name',
    keyed(
      '[[log.anchors]]\nkind = "folder"\nlocation = "a"\nname = "x"\n[[log.anchors]]\nkind = "folder"\nlocation = "b"\nname = "x"',
    ),
    /is the name of another anchor too/,
  ],
  [
    'a bucket over plain http',
    keyed('[[log.anchors]]\nkind = "s3"\nlocation = "http://s3.example/abc"'),
    /must be https/,
  ],
  ['a value that is not a table', bare('log = 1'), /log: must be a table/],
])('in [log], %s is refused', async (_, text, message) => {
  expect((await wrong(text)).join('\n')).toMatch(message);
});

test('an invalid signing key is reported without printing it', async () => {
  const mistakes = (await mistakesIn(keyed(), {}, { ...env, LOG_KEY: 'z'.repeat(64) })).join('\n');
  expect(mistakes).toMatch(/not an Ed25519 seed/);
  expect(mistakes).not.toContain('zzz');
});
