import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { commands } from '../../../src/app/cli/commands.ts';
import { signAttestation } from '../../../src/audit/rules/attestation.ts';
import { noteSigner } from '../../../src/base/values/log/checkpoint.ts';
import { tollbook } from '../../support/program.ts';

const hash = `0x${'a'.repeat(64)}`;
const node = ['--rpc', 'eip155:1=http://127.0.0.1:1'];
const chain = ['--network', 'eip155:1', ...node];
const ofChain = ['--tx', hash, ...chain];
const why = ['--why', 'a reason'];
const by = ['--by', 'ada'];
const elsewhere = ['--database', 'localhost', '--public-url', 'none'];
const config = ['--config', 'config/example.toml'];
const folder = mkdtempSync(path.join(tmpdir(), 'tollbook-arguments-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const [seedFile, noteFile] = [path.join(folder, 'seed'), path.join(folder, 'note')];
const seed = Buffer.alloc(32, 7);
const signer = noteSigner('audit.example/tollbook', [seed]);
const owed = { count: 0, sha256: seed.toString('base64') };
writeFileSync(seedFile, seed.toString('base64'));
writeFileSync(noteFile, signAttestation({ size: 1, root: seed, owed }, signer));
const ids = [['x'], ['0'], ['-1'], ['1.5'], ['0x1'], ['1e1'], [' 1'], ['']];

/** Arguments that a command takes, and others without a name that it does not. */
interface Use {
  readonly args: readonly string[];
  readonly wrong?: readonly (readonly string[])[];
}

const uses: Readonly<Record<string, Use>> = {
  start: { args: [] },
  devnet: { args: [] },
  pay: {
    args: ['1', '0', 'x'],
    wrong: [
      ['x', '0', 'x'],
      ['1', 'x', 'x'],
      ['1', '0'],
      ['weather/berlin'],
      ['http://[', 'x'],
      ['http://['],
    ],
  },
  proxy: {
    // a developer may have started a gateway on the usual ports
    args: '--to|http://127.0.0.1:9|--price|1 USD|--devnet|--port|28402|--gateway-port|28403'.split('|'),
  },
  init: {
    args: [
      '--network',
      'base',
      '--pay-to',
      `0x${'1'.repeat(40)}`,
      '--sell',
      'Portrait for 1 USD',
      ...elsewhere,
    ],
  },
  serve: { args: config },
  pricing: { args: config },
  migrate: { args: [] },
  recover: { args: [...config, ...by] },
  'go-live': { args: [...config, ...by, ...why] },
  doctor: { args: config },
  'config check': { args: ['config/example.toml'], wrong: [[], ['absent.toml']] },
  'config reference': { args: [] },
  'commands reference': { args: [] },
  'auth-dry-run': {
    args: ['1', '0', 'x'],
    wrong: [
      ['x', '0', 'x'],
      ['1', 'x', 'x'],
    ],
  },
  settlements: { args: [] },
  'settlements resolve': {
    args: [hash, '--paid', hash, '--log-index', '0', '--evidence', 'seen', ...by],
    wrong: [[], ['0x12'], ['']],
  },
  'refunds due': { args: [] },
  'refunds requests': { args: [] },
  'refunds grant': { args: ['--quote-digest', hash] },
  'refunds decline': { args: ['--quote-digest', hash, ...why] },
  'refunds batch': { args: ['--out', '/tmp/none.json', ...chain] },
  'refunds abandon': { args: ['--quote-digest', hash, '--payment', hash, ...node] },
  'refunds record': { args: ['--quote-digest', hash, '--tx', hash, ...node] },
  'sweeps record': { args: ofChain },
  'sweeps list': { args: [] },
  'sweeps payments': { args: ['--tx', hash] },
  'transfers record': { args: [...ofChain, '--income'] },
  'transfers reverse': { args: ['--network', 'eip155:1', '--tx', hash, ...why] },
  'transfers list': { args: [] },
  'calls dead': { args: ['--by-cause'] },
  'calls requeue': { args: ['--runner', 'one'] },
  'calls discard': { args: ['--runner', 'one', '--count', '1', ...why] },
  'quotes revoke': { args: ['--before', '2026-11-20T06:30:00Z'] },
  'operators invite': {
    args: ['ada', '--email', 'ada@example.org', '--role', 'admin', '--url', 'https://gateway.example'],
    wrong: [[], ['two words'], ['']],
  },
  'operators list': { args: [] },
  'operators withdraw': { args: ['ada'], wrong: [[], ['two words'], ['']] },
  'operators code': { args: [] },
  'operators reset-factor': { args: ['ada'], wrong: [[], ['two words'], ['']] },
  'tokens create': { args: ['ada', '--scope', 'audit:read'], wrong: [[], ['two words'], ['']] },
  'tokens list': { args: [] },
  'tokens revoke': { args: ['1'], wrong: [[], ...ids] },
  'users disable': { args: ['ada@example.org'], wrong: [[], ['']] },
  'users enable': { args: ['ada@example.org'], wrong: [[], ['']] },
  'users erase': { args: ['ada@example.org'], wrong: [[], ['']] },
  'keys create': { args: ['--account', 'ada'] },
  'keys list': { args: [] },
  'keys revoke': { args: ['1'], wrong: [[], ...ids] },
  'credit grant': {
    args: ['ada', '5.00'],
    wrong: [[], ['ada'], ['', '5.00'], ['ada', '5,00'], ['ada', '0'], ['ada', '1e3'], ['ada', '']],
  },
  'credit expire': { args: ['ada', '5.00'], wrong: [[], ['ada'], ['two words', '5.00'], ['ada', '0x5']] },
  'credit list': { args: [] },
  'spend list': { args: [] },
  export: { args: ['--format', 'csv', '--from', '2026-01', '--to', '2026-02'] },
  'costs record': { args: [...ofChain, '--purpose', 'refund'] },
  'costs reverse': { args: ['--network', 'eip155:1', '--tx', hash, ...why] },
  'costs list': { args: [] },
  aging: { args: [] },
  reconcile: { args: ['--from', '2026-01', '--to', '2026-02', ...node] },
  'reconcile explain': {
    args: ['0x12345678', '--class', 'other', '--note', 'seen', ...by],
    wrong: [[], ['0x12'], ['x'], ['']],
  },
  'period close': { args: ['2026-01', ...by], wrong: [[], ['2026-13'], ['x'], ['']] },
  'period review': { args: ['2026-01', ...by], wrong: [[], ['2026-13'], ['x'], ['']] },
  'period reopen': {
    args: ['2026-01', '--reason', 'a reason', ...by],
    wrong: [[], ['2026-13'], ['x'], ['']],
  },
  'period list': { args: [] },
  'period show': { args: ['2026-01'], wrong: [[], ['2026-13'], ['x'], ['']] },
  'period check': { args: ['2026-01'], wrong: [[], ['2026-13'], ['x'], ['']] },
  'invoices issue': {
    args: ['2026-10', '--customer', 'acme', '--series', '2026', ...by],
    wrong: [[], ['yesterday'], ['']],
  },
  'invoices statement': { args: ['2026-10', '--customer', 'acme'], wrong: [[], ['yesterday'], ['']] },
  'invoices list': { args: ['--series', '2026'] },
  verify: { args: [], wrong: [[''], ['absent.jsonl']] },
  'attestations sign': {
    args: [signer.name, '--key', seedFile, '--out', path.join(folder, 'out')],
    wrong: [[], [''], ['two words']],
  },
  'attestations record': { args: ['--file', noteFile, '--attested-by', signer.verifierKeys[0], ...by] },
  'attestations list': { args: ['--attested-by', signer.verifierKeys[0]] },
  'log key': { args: ['jobs.example/log'], wrong: [[], [''], ['two words']] },
  'projections rebuild': { args: [] },
  'runners pause': { args: ['one'], wrong: [[], ['two words'], ['']] },
  'runners resume': { args: ['one'], wrong: [[], ['two words'], ['']] },
};

const times = ['yesterday', '2026-02-30', '2026-13', '2026', '2026-11-20T25:00:00Z', ''];
const numbers = ['x', '-1', '1.5', '0x10', '1e1', ' 1', ''];
const hashes = ['x', '0x12', `${hash}0`, ''];

/** Values that no option takes whose value has this name. */
const unreadable: Readonly<Record<string, readonly string[]>> = {
  N: numbers,
  // a request that has expired can be tried
  'auth-dry-run N': numbers.filter((text) => text !== '-1'),
  INDEX: numbers,
  "'N TOKEN'": ['1', '1.5', '0 USDC', '-1 USDC', '1. USDC', 'USDC', ''],
  ID: [...numbers],
  PORT: [...numbers, '65536'],
  TIME: times,
  '2026-11': times,
  '2026-12': times,
  '2026-11-01': times,
  '2026-04': times,
  TRANSACTION: hashes,
  TX: hashes,
  DIGEST: hashes,
  NONCE: hashes,
  ADDRESS: ['x', '0x12', ''],
  NETWORK: ['mainnet', 'eip155:', 'eip155:x', ''],
  'NETWORK=URL': ['x', 'eip155:1', 'eip155:1=ftp://node', 'http://127.0.0.1:1', ''],
  'NETWORK=N': ['x', 'eip155:1', 'eip155:1=x', 'eip155:1=-1', ''],
  NAME: ['two words', 'ada@example', ''],
  "'TEXT'": ['ada@example', 'two\nlines', ''],
  TEXT: [''],
  CUSTOMER: ['two words', ''],
  SERIES: ['two words', 'lower', ''],
  "'LINE'": [''],
  TYPE: [''],
  ROLE: ['root', ''],
  SCHEME: ['upto', ''],
  SCOPE: ['everything', ''],
  CLASS: ['x', ''],
  PURPOSE: ['x', ''],
  FORMAT: ['xml', ''],
  'all|none|only': ['some', ''],
  CAUSE: ['x', ''],
  REASON: ['no such reason', ''],
  'SERVICE/JOB': ['1', '1/x', '/', '1/0/0', '-1/0', ''],
  ZONE: ['Nowhere/At', ''],
  URL: ['nowhere', ''],
  'a,b': ['a,,b', 'two words', ''],
  '5.00': ['5,00', '-1', '1e3', 'x', ''],
  '1.00/day': ['1.00', '1.00/week', '0/day', '1,00/day', ''],
  EUR: ['eur', ''],
  USD: ['usd', ''],
  FILE: ['absent/none', ''],
  'FILE|-': ['absent/none', ''],
  FOLDER: [''],
  EXPORT: ['absent.jsonl', ''],
  KEY: ['absent', ''],
  RANGES: ['x', '10.0.0.0/33'],
  "'N USD'": ['1', '1 EUR', '0 USD', '-1 USD', ''],
  "'METHOD PATH=N USD'": ['GET /x', 'FETCH /x=1 USD', 'GET x=1 USD', 'GET /x=1', 'GET /a//b=1 USD', ''],
  'NAME|URL': ['nobody', 'ftp://facilitator', ''],
  "'WHAT for PRICE'": ['http://localhost:3000', 'Portrait for 1 EUR', 'ftp://localhost for 1 USD', ''],
  HOST: ['db:x', 'db:5432:1', 'postgresql://db', ''],
};

const env = { DATABASE_URL: 'postgresql://ada@127.0.0.1:1/books', TOLLBOOK_CALLER_KEY: hash };

/** Undefined if these arguments were refused, before the database or a node was asked for anything. */
async function acceptance(args: readonly string[]): Promise<string | undefined> {
  const { code, stdout, stderr } = await tollbook(args, env);
  const isRefused =
    (code === 2 || code === 78) && stdout === '' && !/127\.0\.0\.1:1|fetch failed|^ {4}at /m.test(stderr);
  return isRefused ? undefined : `${JSON.stringify(args)}: ${code} ${stdout}${stderr}`;
}

/** The arguments of a command, each time with one thing that cannot be read. */
function* wrongUses(name: string, { args, wrong = [] }: Use): Generator<readonly string[]> {
  const first = args.findIndex((arg) => arg.startsWith('--'));
  const unnamed = first === -1 ? args : args.slice(0, first);
  const named = args.slice(unnamed.length);
  for (const more of ['--no-such-option', '--no-such-option=1', 'extra']) yield [...args, more];
  yield [...unnamed, 'extra', ...named];
  for (const other of wrong) yield [...other, ...named];
  for (const [option, { value, multiple }] of Object.entries(commands[name]?.options ?? {})) {
    if (value === undefined) {
      yield [...args, `--${option}=x`];
      continue;
    }
    const at = named.indexOf(`--${option}`);
    const others = [...unnamed, ...(at === -1 ? named : named.toSpliced(at, 2))];
    yield [...others, `--${option}`];
    if (!multiple) yield [...others, `--${option}=1`, `--${option}=1`];
    const texts = unreadable[`${name} ${value}`] ?? unreadable[value];
    if (!texts) throw new Error(`which values of ${value} cannot be read?`);
    for (const text of texts) yield [...others, `--${option}=${text}`];
  }
}

test('every command is in the table of uses', () => {
  expect(Object.keys(uses)).toEqual(Object.keys(commands));
});

test.each(Object.keys(uses))(
  'each argument of %s that cannot be read is refused, and nothing is done',
  async (name) => {
    const accepted: string[] = [];
    for (const args of wrongUses(name, uses[name] ?? { args: [] })) {
      const answer = await acceptance([...name.split(' '), ...args]);
      if (answer !== undefined) accepted.push(answer);
    }
    expect(accepted).toEqual([]);
  },
);

// these would start, write files, need no database, or ask strangers
const others = [
  'start',
  'devnet',
  'pay',
  'init',
  'serve',
  'pricing',
  'operators code',
  'recover',
  'go-live',
  'doctor',
  'config check',
  'config reference',
  'commands reference',
  'auth-dry-run',
  'log key',
];

test.each(Object.entries(uses).filter(([name]) => !others.includes(name)))(
  'the use of %s that is varied is itself accepted',
  async (name, { args }) => {
    expect(await acceptance([...name.split(' '), ...args])).toEqual(expect.any(String));
  },
);
