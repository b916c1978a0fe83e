import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { compareAnchors } from '../../../../src/audit/use-cases/log/anchors.ts';
import type { Anchor } from '../../../../src/audit/peers/anchors/anchor.ts';
import { decideStart } from '../../../../src/finance/use-cases/recovery/decide-start.ts';
import { goLive } from '../../../../src/finance/use-cases/recovery/go-live.ts';
import { readIdentity, readRecordedIdentity } from '../../../../src/ledger/store/database-identity.ts';
import { openLedger } from '../refunds/support.ts';
import { booksConfig, booksEnv, startBooks } from '../../../support/books.ts';
import { becomeCopy } from '../../../support/copy.ts';
import { createDatabase, type TestDatabase } from '../../../support/database.ts';
import { startTollbook, temporaryFolder, tollbook } from '../../../support/program.ts';
import { appendRefusals, rootOfEvents, sealAll, testSigner, testVerifier } from '../../../support/log.ts';

/** A database that is on record, with something else in the record. */
async function onRecord(change: string): Promise<TestDatabase> {
  const database = await createDatabase();
  const live = { kind: 'live', database: await readIdentity(database.pool) };
  expect(await decide(database)).toEqual(live);
  expect(await decide(database)).toEqual(live);
  await appendRefusals(database, 3);
  await sealAll(database);
  await database.asOwner((owner) => owner.query(`update tollbook.database_identity set ${change}`));
  return database;
}

const decide = ({ pool }: TestDatabase, anchors: readonly Anchor[] = []) =>
  decideStart({ pool, compareAnchors: () => compareAnchors(pool, testVerifier, anchors), patienceMs: 0 });

/** An anchor with a checkpoint of this many events. */
const anchorOf = async (database: TestDatabase, size: number): Promise<Anchor> => ({
  name: 'a',
  place: 'an anchor',
  everyMs: 1,
  isFree: true,
  newest: async () => ({ kind: 'head', size, root: await rootOfEvents(database, size) }),
  publish: () => Promise.reject(new Error('it publishes nothing')),
  close: async () => {},
});

const compare = () => Promise.reject(new Error('no anchor may be asked'));
const because = (pattern: RegExp) => ({ kind: 'quiet', reason: expect.stringMatching(pattern) });
const order = { operator: 'ada', why: 'moved', signer: undefined, anchors: [] };

test('a database with another system identifier, or another number in its server, is quiet, and no anchor is asked', async () => {
  for (const change of [`system_identifier = '1'`, `system_identifier = null`, 'oid = 1']) {
    const database = await onRecord(change);
    expect(await decideStart({ pool: database.pool, compareAnchors: compare })).toMatchObject({
      kind: 'quiet',
      reason: expect.stringMatching(/and on record is .*: this is a copy/),
    });
  }
});

test('after a change of the timeline an anchor decides: with all that it knows the database is live, else quiet', async () => {
  const database = await onRecord('timeline = 77');
  expect(await decide(database)).toMatchObject(
    because(/timeline 77: nothing proves .* no anchor is configured/),
  );
  const silent = {
    ...(await anchorOf(database, 3)),
    newest: async () => ({ kind: 'failed' as const, cause: 'it is unreachable' }),
  };
  expect(await decide(database, [silent])).toMatchObject(because(/no anchor has a checkpoint/));
  const behind = await anchorOf(database, 2);
  const ahead = {
    ...behind,
    newest: async () => ({ kind: 'head' as const, size: 9, root: Buffer.alloc(32) }),
  };
  expect(await decide(database, [behind, ahead])).toMatchObject(because(/the last 6 events are missing/));
  expect(await decide(database, [behind, silent])).toMatchObject({
    kind: 'live',
    continued: { proof: { proven_by: 'anchor', anchored_size: 2 } },
  });
});

test('a quiet database with known losses does not go live: the refusal leaves the ledger unchanged', async () => {
  const database = await onRecord('timeline = 77');
  const anchor = {
    ...(await anchorOf(database, 2)),
    newest: async () => ({ kind: 'head' as const, size: 9, root: Buffer.alloc(32) }),
  };
  const ledger = openLedger(database);
  expect(await goLive(ledger, { ...order, signer: testSigner, anchors: [anchor] })).toMatchObject({
    kind: 'lossy',
    loss: { keptSeq: 3, lostTo: 9 },
  });
  expect((await readRecordedIdentity(database.pool))?.database.timeline).toBe(77);
});

test('a database whose live gateways run does not go live; afterwards it does, and one that is live needs nothing', async () => {
  const database = await createDatabase();
  const ledger = openLedger(database);
  // whatever its sessions are called
  const url = `${database.url}${database.url.includes('?') ? '&' : '?'}application_name=other`;
  const gateway = await startBooks({ ...database, url });
  expect(await goLive(ledger, order)).toEqual({ kind: 'is_live' });
  await becomeCopy(database);
  expect(await goLive(ledger, order)).toEqual({ kind: 'gateway_runs' });
  await gateway.stop();
  expect(await goLive(ledger, order)).toEqual({ kind: 'went_live', generation: 2 });
  expect(await goLive(ledger, order)).toEqual({ kind: 'is_live' });
});

test('a quiet process goes live by itself after the command, which names its operator and the reason; serve --go-live does both', async () => {
  const database = await createDatabase();
  await startBooks(database).then((gateway) => gateway.stop());
  await becomeCopy(database);
  const file = path.join(temporaryFolder(), 'gateway.toml');
  writeFileSync(file, booksConfig().replace('"silent"', '"info"'));
  const env = { ...booksEnv, DATABASE_URL: database.url };
  const program = startTollbook(['serve', '--config', file], env);
  await program.says(/"msg":"quiet: this gateway serves only reads[^]*"msg":"listening"/);

  const command = ['go-live', '--config', file, '--by', 'ada'];
  expect(await tollbook(command, env)).toMatchObject({ code: 2, stderr: expect.stringMatching(/--why/) });
  const went = await tollbook([...command, '--why', 'the disk is lost'], env);
  expect(went).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/is the ledger.*\n.*log\/2 from now on/),
  });
  await program.says(/"msg":"the database is the ledger now[^]*"msg":"listening"/);
  program.kill('SIGTERM');
  expect(await program.ended).toMatchObject({ code: 0 });

  await database.asOwner((owner) =>
    owner.query(`create database ${copyOf(database)} template ${nameOf(database)}`),
  );
  const copy = { ...env, DATABASE_URL: database.url.replace(nameOf(database), copyOf(database)) };
  const args = ['serve', '--config', file, '--go-live', '--by', 'ada', '--why', 'moved'];
  const live = startTollbook(args, copy);
  await live.says(/log\/3 from now on[^]*"msg":"listening"/);
  expect(live.stdout()).not.toContain('quiet: this gateway');
  live.kill('SIGTERM');
  await live.ended;
  await database.asOwner((owner) => owner.query(`drop database ${copyOf(database)} with (force)`));
});

const nameOf = ({ url }: TestDatabase): string => /test_\w+/.exec(url)?.[0] ?? '';
const copyOf = (database: TestDatabase): string => `${nameOf(database)}_copy`;
