import { randomBytes } from 'node:crypto';
import { beforeAll, inject, expect, onTestFinished, test } from 'vitest';
import { commands } from '../../src/cli/commands.ts';
import { readerRole } from '../../src/store/database.ts';
import { type TestDatabase, withClient } from '../support/database.ts';
import { useChain } from '../support/devnet.ts';
import { testSigner } from '../support/log.ts';
import { tollbook, withoutProgress } from '../support/program.ts';
import { paid } from '../support/reconcile.ts';

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

test('every command whose help says that the reader role is enough works with it, and changes nothing', async () => {
  const { database, period } = await paid(chain);
  const env = { DATABASE_URL: await asReader(database) };
  const notClosed = '2026-01 is not closed: `tollbook period list` shows those that are\n';
  const used: Readonly<Record<string, readonly string[]>> = {
    export: ['--format', 'csv', ...period],
    reconcile: [...period, ...proof, '--no-store'],
    'period list': [],
    'period show': ['2026-01'],
    'period check': ['2026-01'],
    verify: [],
    settlements: [],
    'refunds due': [],
    'sweeps list': [],
    'transfers list': [],
    'costs list': [],
    'credit list': [],
    'spend list': [],
  };
  const reading = Object.entries(commands).flatMap(([name, command]) => (command.isReading ? [name] : []));
  expect(reading.toSorted()).toEqual(Object.keys(used).toSorted());
  for (const [name, args] of Object.entries(used)) {
    const { code, stderr } = await tollbook([...name.split(' '), ...args], env);
    const answer = args[0] === '2026-01' ? { code: 2, words: notClosed } : { code: 0, words: '' };
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
  expect(stdout).toMatch(/Clean: 0 breaks, 0 open\n$/);
});
