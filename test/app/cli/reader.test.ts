import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, inject, expect, onTestFinished, test } from 'vitest';
import { noteSigner } from '../../../src/base/values/log/checkpoint.ts';
import { commands } from '../../../src/app/cli/commands.ts';
import { readerRole } from '../../../src/ledger/store/database.ts';
import { type TestDatabase, withClient } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { testSigner } from '../../support/log.ts';
import { temporaryFolder, tollbook, withoutProgress } from '../../support/program.ts';
import { paid } from '../../support/reconcile.ts';
import { busyLedger } from '../../support/synthetic-ledger.ts';
import { sealedLedger } from '../../support/verify.ts';

const chain = useChain();
let proof: readonly string[];
beforeAll(() => {
  proof = ['--rpc', `eip155:84532=${chain.rpcUrl}`, '--pubkey', testSigner.verifierKeys[0]];
});

/** The address of a database for a user with the reader's role alone. */
async function asReader(database: TestDatabase): Promise<string> {
  const name = `reader_${randomBytes(8).toString('hex')}`;
  await database.asOwner((owner) =>
    owner.query(`create role ${name} login password 'secret' in role ${readerRole}`),
  );
  onTestFinished(async () => {
    await withClient(inject('serverUrl').replace('DATABASE', 'postgres'), (admin) =>
      admin.query(`drop role ${name}`),
    );
  });
  return database.url.replace(/\/\/([^/@]*@)?/, `//${name}:secret@`);
}

const notClosed = '2026-01 is not closed: `tollbook period list` shows those that are\n';

/** Commands that need a database and more than to read it: they record, change rows, check the gateway's rights, or show secrets and people. */
const needMore = [
  'proxy',
  'recover',
  'go-live',
  'serve',
  'migrate',
  'doctor',
  'settlements resolve',
  'refunds batch',
  'refunds decline',
  'refunds grant',
  'refunds abandon',
  'refunds record',
  'sweeps record',
  'transfers record',
  'transfers reverse',
  'costs record',
  'costs reverse',
  'reconcile explain',
  'period close',
  'period review',
  'period reopen',
  'invoices issue',
  'attestations record',
  'projections rebuild',
];
/** And those that are no part of finance. */
const otherGroups = /^(?:calls|config|credit|keys|log|operators|pricing|quotes|runners|tokens|users)\b/;

test('every command of finance that needs a database says in its help that the reader role is enough, or records something', () => {
  const silent = Object.entries(commands).flatMap(([name, { noDatabase, notes = [], isReading }]) =>
    (!noDatabase || notes.join(' ').includes('DATABASE_URL')) && !isReading && !otherGroups.test(name)
      ? [name]
      : [],
  );
  expect(silent.toSorted()).toEqual(needMore.toSorted());
});

test('a command that records ends with 2 and one line for a user with the reader role, and does not wait', async () => {
  const { database, period, json, run } = await paid(chain);
  expect((await run([...period, ...proof, '--json', json])).code).toBe(0);
  const env = { DATABASE_URL: await asReader(database) };
  const name = `${period[1]}/${period[3]}`;
  for (const args of [
    ['period', 'close', name, '--by', 'ada', '--report', json],
    ['quotes', 'revoke', '--before', '2020-01-01T00:00:00Z'],
    ['runners', 'pause', 'poller'],
  ]) {
    const { code, stdout, stderr } = await tollbook(args, env);
    expect({ args, code, stdout, words: withoutProgress(stderr) }).toEqual({
      args,
      code: 2,
      stdout: '',
      words: expect.stringMatching(/^nothing was recorded: the user of DATABASE_URL may only read.*\n$/),
    });
  }
});

test('every command whose help says that the reader role is enough works with it, and changes nothing', async () => {
  const { database, period } = await paid(chain);
  const env = { DATABASE_URL: await asReader(database) };
  const refusals: Readonly<Record<string, string>> = {
    'period show': notClosed,
    'period check': notClosed,
    'invoices statement': notClosed,
    'sweeps payments': 'no sweep of this transaction is recorded\n',
  };
  const folder = temporaryFolder();
  const [rates, seedFile] = [path.join(folder, 'rates.csv'), path.join(folder, 'seed')];
  const seed = randomBytes(32);
  const verifier = noteSigner('audit.example/tollbook', [seed]);
  writeFileSync(seedFile, seed.toString('hex'));
  writeFileSync(rates, '2020-01-01,USDC-84532,USD,1\n');
  const used: Readonly<Record<string, readonly string[]>> = {
    export: ['--format', 'csv', ...period],
    aging: ['--as-of', period[3] ?? ''],
    reconcile: [...period, ...proof, '--no-store'],
    'period list': [],
    'period show': ['2026-01'],
    'period check': ['2026-01'],
    'invoices statement': ['2026-01', '--customer', 'acme'],
    'invoices list': ['--series', '2026'],
    'attestations sign': [verifier.name, '--key', seedFile, '--out', path.join(folder, 'attestation')],
    'attestations list': ['--attested-by', verifier.verifierKeys[0]],
    verify: [],
    settlements: [],
    'refunds due': [],
    'refunds requests': [],
    'sweeps list': ['--rates', rates],
    'sweeps payments': ['--tx', `0x${'a'.repeat(64)}`],
    'transfers list': [],
    'costs list': [],
    'credit list': [],
    'spend list': [],
  };
  const reading = Object.entries(commands).flatMap(([name, command]) => (command.isReading ? [name] : []));
  expect(reading.toSorted()).toEqual(Object.keys(used).toSorted());
  for (const [name, args] of Object.entries(used)) {
    const { code, stderr } = await tollbook([...name.split(' '), ...args], env);
    const refusal = refusals[name];
    const answer = refusal === undefined ? { code: 0, words: '' } : { code: 2, words: refusal };
    expect({ name, code, words: withoutProgress(stderr) }).toEqual({ name, ...answer });
  }
  const { rows } = await database.pool.query('select from tollbook.reconciliation');
  expect(rows).toEqual([]);
  expect((await tollbook(['verify', '--help'])).stdout).toContain('the reader role alone');
});

test('a report that cannot be stored is printed all the same, and the command ends with 2', async () => {
  const { database, period } = await paid(chain);
  const env = { DATABASE_URL: await asReader(database) };
  const { code, stdout, stderr } = await tollbook(['reconcile', ...period, ...proof], env);
  expect({ code, stderr: withoutProgress(stderr) }).toEqual({
    code: 2,
    stderr: expect.stringMatching(/^the report is complete, but was not stored: permission denied/),
  });
  expect(stdout).toMatch(/Clean: 0 breaks, 0 open items\n$/);
});

test('refunds due waits for read models that a gateway is about to bring up to date, and says where no process does', async () => {
  const { database } = await sealedLedger(busyLedger().take(114).toArray(), 60);
  const env = { DATABASE_URL: await asReader(database) };
  expect(await tollbook(['refunds', 'due'], env)).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringMatching(/^the read models do not have the newest events yet.*\n$/),
  });
  const [waited] = await Promise.all([
    tollbook(['refunds', 'due'], env),
    tollbook(['refunds', 'due'], { DATABASE_URL: database.url }),
  ]);
  expect({ code: waited.code, stderr: waited.stderr }).toEqual({ code: 0, stderr: '' });
});
