import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openCheckpoint, signCheckpoint } from '../../../../src/base/values/log/checkpoint.ts';
import { findInconsistency, publishNewestHead } from '../../../../src/audit/use-cases/log/anchors.ts';
import { createKnownHead } from '../../../../src/audit/use-cases/log/history.ts';
import type { Anchor } from '../../../../src/audit/peers/anchors/anchor.ts';
import { createAnchor } from '../../../../src/audit/peers/anchors/create-anchor.ts';
import { sealNext } from '../../../../src/audit/use-cases/log/seal.ts';
import { readHead, scheduleAnchor } from '../../../../src/audit/store/log.ts';
import { backUp } from '../../../support/backup.ts';
import { startBooks } from '../../../support/books.ts';
import { bucketKeys, startBucket } from '../../../support/bucket.ts';
import { createDatabase, type TestDatabase } from '../../../support/database.ts';
import {
  appendRefusals,
  atOnce,
  beginGeneration,
  folderTable,
  logPlace,
  newestIn,
  rootOfEvents,
  sealAll,
  testSigner,
  testVerifier,
} from '../../../support/log.ts';
import { temporaryFolder } from '../../../support/program.ts';
import { eventually } from '../../../support/wait.ts';

const origin = testSigner.name;

async function publishDue({ pool }: TestDatabase, anchor: Anchor) {
  await scheduleAnchor(pool, origin, anchor.name, 0);
  return publishNewestHead(pool, testSigner, anchor);
}

/** A head of the database, as an anchor gets it. */
async function headOf(database: TestDatabase, size: number) {
  const root = await rootOfEvents(database, size);
  return { origin, size, root, note: signCheckpoint({ origin, size, root }, testSigner) };
}

test('a folder is only extended: a late writer, another root and an unreadable checkpoint change nothing', async () => {
  const database = await createDatabase();
  const folder = temporaryFolder();
  const anchor = createAnchor({ kind: 'folder', name: 'one', everyMs: 0, folder });
  await appendRefusals(database, 30);
  const publish = async (size: number) => anchor.publish(await headOf(database, size), { kind: 'none' });
  expect(await publish(10)).toEqual({ kind: 'done' });
  expect(await publish(20)).toEqual({ kind: 'done' });
  expect(await publish(15)).toEqual({ kind: 'failed', cause: 'overtaken' });
  expect(newestIn(folder).size).toBe(20);
  const forged = { ...(await headOf(database, 20)), root: Buffer.alloc(32, 1) };
  expect(await anchor.publish(forged, { kind: 'none' })).toEqual({
    kind: 'failed',
    cause: 'another_history',
  });
  // a process that died between its look and its last write has restored an older copy
  const file = path.join(folder, logPlace, 'checkpoint');
  copyFileSync(path.join(folder, logPlace, '0000000000000010'), file);
  expect(await anchor.newest?.(origin)).toEqual({ kind: 'note', note: (await headOf(database, 20)).note });
  writeFileSync(file, 'no checkpoint');
  expect(await publish(30)).toMatchObject({ kind: 'failed' });
  await sealAll(database);
  expect(await publishDue(database, anchor)).toMatchObject({ kind: 'unverifiable', size: 30 });
  expect(readFileSync(file, 'utf8')).toBe('no checkpoint');
});

test('a bucket is only extended: what was read is replaced, and nothing that another process wrote since', async () => {
  const database = await createDatabase();
  const bucket = await startBucket();
  const anchor = createAnchor({
    kind: 's3',
    name: 'one',
    everyMs: 0,
    endpoint: bucket.url,
    bucket: 'b',
    prefix: '',
    region: 'us-east-1',
    ...bucketKeys,
  });
  onTestFinished(() => anchor.close());
  await appendRefusals(database, 30);
  const newest = () =>
    openCheckpoint(bucket.objects.get(`/b/${logPlace}/checkpoint`) ?? '', testVerifier).size;
  const none = await anchor.newest!(origin);
  expect(await anchor.publish(await headOf(database, 20), none)).toEqual({ kind: 'done' });
  expect(await anchor.publish(await headOf(database, 15), none)).toEqual({
    kind: 'failed',
    cause: 'overtaken',
  });
  const read = await anchor.newest!(origin);
  expect(await anchor.publish(await headOf(database, 30), read)).toEqual({ kind: 'done' });
  expect(await anchor.publish(await headOf(database, 25), read)).toEqual({
    kind: 'failed',
    cause: 'overtaken',
  });
  const forged = { ...(await headOf(database, 20)), root: Buffer.alloc(32, 1) };
  expect(await anchor.publish(forged, read)).toEqual({ kind: 'failed', cause: 'another_history' });
  expect(newest()).toBe(30);
});

test('a gateway whose database was replaced while it ran halts the ledger, and the anchor keeps its checkpoint', async () => {
  const database = await createDatabase();
  const folder = temporaryFolder();
  const tables = folderTable(folder);
  await appendRefusals(database, 10);
  const restore = await backUp(database);
  await startBooks(database, { tables });
  await appendRefusals(database, 20);
  await eventually(() => expect(newestIn(folder).size).toBe(30));
  const anchored = newestIn(folder);
  await restore();
  // as many other events; the gateway may stop them at any moment
  await appendRefusals(database, 20).catch(() => {});
  const { db } = database;
  const halt = () => db.selectFrom('tollbook.lane').select('halt_reason').executeTakeFirst();
  await eventually(async () => expect((await halt())?.halt_reason).not.toBeNull());
  expect(newestIn(folder)).toEqual(anchored);
  await expect(startBooks(database, { tables })).rejects.toThrow(/the ledger is inconsistent/);
});

test('a process remembers the newest head that it knows to be recorded, and notices a database without it', async () => {
  const database = await createDatabase();
  const known = createKnownHead();
  await appendRefusals(database, 10);
  const restore = await backUp(database);
  await appendRefusals(database, 20);
  const head = await headOf(database, 30);
  expect(await known.learn(database.pool, head)).toBeUndefined();
  expect(await known.check(database.pool)).toBeUndefined();
  await restore();
  expect(await known.check(database.pool)).toMatchObject({ kind: 'ahead', seq: 10, head: { size: 30 } });
  await appendRefusals(database, 30);
  const other = { kind: 'other_history', head: { size: 30, root: head.root } };
  expect(await known.learn(database.pool, await headOf(database, 40))).toMatchObject(other);
  expect(await known.check(database.pool)).toMatchObject(other);
  expect(await sealNext(database.pool, testSigner, atOnce, known)).toBe('done');
  expect(await readHead(database.pool, origin)).toBeUndefined();
  const found = () => findInconsistency(database.pool, testSigner, known, []);
  expect((await found())?.isOver).toBeUndefined();
  // one that did not run while an operator recovered the ledger concerns no other
  await beginGeneration(database, 2, 10);
  expect(await found()).toMatchObject({ isOver: true });
});

test('before a larger tree is published, the anchored one must be its beginning', async () => {
  const database = await createDatabase();
  const anchor = createAnchor({ kind: 'folder', name: 'one', everyMs: 0, folder: temporaryFolder() });
  await appendRefusals(database, 10);
  const restore = await backUp(database);
  await appendRefusals(database, 5);
  await sealAll(database);
  expect(await publishDue(database, anchor)).toEqual({ kind: 'done', size: 15 });
  const reading = await anchor.newest!(origin);
  await restore();
  await appendRefusals(database, 10);
  await sealAll(database);
  expect(await publishDue(database, anchor)).toMatchObject({
    kind: 'inconsistent',
    halt: { reason: expect.stringMatching(/first 15 events .* another history$/) as string },
  });
  expect(await anchor.newest!(origin)).toEqual(reading);
});
