import { asRunner, leaseOne, paid, type Leased } from '../../support/leases.ts';
import { createServer, type ServerResponse } from 'node:http';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { resultPartBytes } from '../../../src/base/values/result-parts.ts';
import { createResultStore } from '../../../src/calls/peers/results/create-result-store.ts';
import { eraseResults } from '../../../src/accounts/store/user-erasure.ts';
import { putStoredResult } from '../../../src/calls/store/result-uploads.ts';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { expectSoundLedger } from '../../support/invariants.ts';
import { eventually } from '../../support/wait.ts';
import {
  leased,
  newFolder,
  inFolder,
  sendPart,
  hashOf,
  complete,
  named,
  sendAll,
  download,
  filesIn,
  large,
  bucketTable,
  sweep,
  starter,
} from './large-results-support.ts';
import { listening } from '../../support/listening.ts';

const start = starter(useChain());

const partOf = (at: number): Buffer => large.subarray(at * resultPartBytes, (at + 1) * resultPartBytes);

/** A call that is completed with a large result in this folder, and the file of its part. */
async function stored(folder: string, bytes = large) {
  const database = await createDatabase();
  const gateway = await start(database, leased + inFolder(folder));
  const to = await paid(gateway);
  const lease = await leaseOne(gateway);
  await sendAll(gateway, lease, bytes);
  expect(await complete(gateway, lease, named(bytes))).toMatchObject({ status: 200 });
  const fileOf = (part: number): string =>
    path.join(folder, 'results', String(lease.call_id), lease.lease_id, String(part));
  return { database, gateway, to, lease, fileOf };
}

test('a whole result whose bytes were altered in the store never ends as if it were right, and the client learns later that a part is missing', async () => {
  const { gateway, to, fileOf } = await stored(await newFolder());
  const good = await readFile(fileOf(2));
  const altered = Buffer.from(good);
  altered[altered.length - 1] = (altered.at(-1) ?? 0) ^ 1;
  await writeFile(fileOf(2), altered);
  await expect(download(gateway, to)).rejects.toThrow('terminated');
  await writeFile(fileOf(2), good.subarray(1));
  await expect(download(gateway, to)).rejects.toThrow('terminated');
  await writeFile(fileOf(2), good);
  await rename(fileOf(0), `${fileOf(0)}.away`);
  const missing = await download(gateway, to);
  expect([missing.status, missing.headers.get('retry-after')]).toEqual([503, '5']);
  expect(JSON.parse(missing.bytes.toString())).toMatchObject({ code: 'result_store_unavailable' });
  await rename(`${fileOf(0)}.away`, fileOf(0));
  expect(hashOf((await download(gateway, to)).bytes)).toBe(hashOf(large));
});

test('no range of a result is sent whose bytes were altered elsewhere, and once they are right it is', async () => {
  const { gateway, to, fileOf } = await stored(await newFolder());
  const good = await readFile(fileOf(2));
  const altered = Buffer.from(good);
  altered[altered.length - 1] = (altered.at(-1) ?? 0) ^ 1;
  await writeFile(fileOf(2), altered);
  const range = 'bytes=100-199';
  const refused = await download(gateway, to, { range });
  expect(refused.status).toBe(503);
  expect(JSON.parse(refused.bytes.toString())).toMatchObject({ code: 'result_store_unavailable' });
  await writeFile(fileOf(2), good);
  const sent = await Promise.all([1, 2].map(() => download(gateway, to, { range })));
  for (const { status, bytes } of sent) {
    expect(status).toBe(206);
    expect(bytes.equals(large.subarray(100, 200))).toBe(true);
  }
});

test('a HEAD tells the length of a result and reads nothing of it', async () => {
  const { gateway, to, fileOf } = await stored(await newFolder());
  await rm(fileOf(0));
  const head = await fetch(`${gateway.url}${to.path}/result`, { method: 'HEAD', headers: to.bearer });
  expect([head.status, head.headers.get('content-length')]).toEqual([200, String(large.length)]);
});

test('the token of another receipt opens no result', async () => {
  const { gateway, to } = await stored(await newFolder(), large.subarray(0, 10));
  const other = await paid(gateway);
  expect((await download(gateway, { ...to, bearer: other.bearer })).status).toBe(401);
  expect((await download(gateway, other)).status).toBe(404);
});

test('a range at the end of an empty result is outside of it', async () => {
  const gateway = await start(await createDatabase(), leased);
  const to = await paid(gateway);
  const { call_id, lease_id } = await leaseOne(gateway);
  const empty = { lease_id, result: { content_type: 'text/plain', body_base64: '' } };
  expect((await asRunner(gateway, `/runner/calls/${call_id}/complete`, empty)).status).toBe(200);
  expect((await download(gateway, to)).status).toBe(200);
  for (const range of ['bytes=-5', 'bytes=0-', 'bytes=0-0'])
    expect((await download(gateway, to, { range })).status).toBe(416);
});

test.each(['folder', 's3'])(
  'parts may come in any order and again, and an empty, short or missing one completes nothing in a store of kind %s',
  async (kind) => {
    const table = kind === 's3' ? (await bucketTable()).table : inFolder(await newFolder());
    const gateway = await start(await createDatabase(), leased + table);
    const to = await paid(gateway);
    const lease = await leaseOne(gateway);
    const completed = async () => (await complete(gateway, lease, named(large))).status;
    expect((await sendPart(gateway, lease, 2, partOf(2))).status).toBe(200);
    expect((await sendPart(gateway, lease, 0, Buffer.alloc(0))).status).toBe(200);
    expect(await completed()).toBe(422);
    expect((await sendPart(gateway, lease, 0, partOf(0))).status).toBe(200);
    expect(await completed()).toBe(422);
    expect((await sendPart(gateway, lease, 1, partOf(0))).status).toBe(200);
    expect(await completed()).toBe(422);
    expect((await sendPart(gateway, lease, 1, partOf(1).subarray(1))).status).toBe(200);
    expect(await completed()).toBe(422);
    expect((await sendPart(gateway, lease, 1, partOf(1))).status).toBe(200);
    expect(await completed()).toBe(200);
    // nothing can replace what was completed
    expect((await sendPart(gateway, lease, 1, partOf(0))).status).toBe(409);
    expect(hashOf((await download(gateway, to)).bytes)).toBe(hashOf(large));
  },
);

test('a bucket that is unreachable, refuses or ignores ranges gives no wrong bytes, and loses no result', async () => {
  const bucket = await bucketTable();
  const gateway = await start(await createDatabase(), leased + bucket.table);
  const to = await paid(gateway);
  const lease = await leaseOne(gateway);
  for (const fault of [500, 503, 403, 301]) {
    bucket.answers(fault);
    const refused = await sendPart(gateway, lease, 0, large.subarray(0, 100));
    expect([refused.status, refused.json.code]).toEqual([503, 'result_store_unavailable']);
  }
  bucket.answers(undefined);
  await sendAll(gateway, lease, large);
  bucket.answers(500);
  expect((await complete(gateway, lease, named(large))).json.code).toBe('result_store_unavailable');
  bucket.answers(undefined);
  expect((await complete(gateway, lease, named(large))).status).toBe(200);
  bucket.answers(500);
  expect((await download(gateway, to)).status).toBe(503);
  bucket.answers('whole');
  expect((await download(gateway, to, { range: 'bytes=100-199' })).status).toBe(503);
  bucket.answers(undefined);
  const piece = await download(gateway, to, { range: 'bytes=100-199' });
  expect([piece.status, piece.bytes.equals(large.subarray(100, 200))]).toEqual([206, true]);
});

test('an upload whose parts cannot be deleted keeps no other from being deleted', async () => {
  const database = await createDatabase();
  const folder = await newFolder();
  const gateway = await start(database, leased + inFolder(folder));
  const leases: Leased[] = [];
  for (let at = 0; at < 2; at++) {
    await paid(gateway);
    const lease = await leaseOne(gateway);
    await sendPart(gateway, lease, 0, large.subarray(0, 100));
    leases.push(lease);
  }
  const [stuck] = leases;
  const file = path.join(folder, 'results', String(stuck?.call_id), String(stuck?.lease_id), '0');
  await rm(file);
  await mkdir(path.join(file, 'inside'), { recursive: true });
  await database.moveClock(7_300);
  await leaseOne(gateway);
  await leaseOne(gateway);
  const results = createResultStore({ kind: 'folder', folder, maxBytes: 1 });
  await expect(sweep(database, results)).rejects.toThrow(`call ${stuck?.call_id}`);
  const left = await database.pool.query('select call_id from tollbook.result_upload');
  expect(left.rows).toEqual([{ call_id: stuck?.call_id }]);
});

test('a gateway that ends between the parts and the completion loses nothing: another one takes the rest under the same lease', async () => {
  const database = await createDatabase();
  const tables = leased + inFolder(await newFolder());
  const first = await start(database, tables);
  const to = await paid(first);
  const lease = await leaseOne(first);
  await sendPart(first, lease, 0, partOf(0));
  await first.stop();
  const second = await start(database, tables);
  for (const at of [1, 2]) await sendPart(second, lease, at, partOf(at));
  expect(await complete(second, lease, named(large))).toMatchObject({ status: 200 });
  expect(hashOf((await download(second, to)).bytes)).toBe(hashOf(large));
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('a result that was stored and never recorded is replaced by that of the next lease', async () => {
  const database = await createDatabase();
  const gateway = await start(database, leased + inFolder(await newFolder()));
  const to = await paid(gateway);
  const lost = await leaseOne(gateway);
  const unrecorded = large.subarray(0, 100);
  await sendPart(gateway, lost, 0, unrecorded);
  // where a kill -9 leaves it: the row of the result is there, its event is not
  await putStoredResult(
    database.pool,
    { callId: lost.call_id, leaseId: lost.lease_id, attempt: 1 },
    'text/plain',
    { bytes: unrecorded.length, sha256: hashOf(unrecorded) },
  );
  expect((await gateway.get(to.path, to.bearer)).json).toMatchObject({ state: 'delivered', result: null });
  expect((await download(gateway, to)).status).toBe(404);
  await database.moveClock(120);
  const lease = await leaseOne(gateway);
  await sendAll(gateway, lease, large);
  expect(await complete(gateway, lease, named(large))).toMatchObject({ status: 200 });
  expect(await complete(gateway, lost, named(unrecorded))).toMatchObject({ status: 409 });
  expect(hashOf((await download(gateway, to)).bytes)).toBe(hashOf(large));
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('the parts of a result that was erased with its payer are deleted by the next sweep, however young they are', async () => {
  const folder = await newFolder();
  const { database, gateway, to } = await stored(folder);
  const { payer } = (await gateway.get(to.path, to.bearer)).json.payment;
  const results = createResultStore({ kind: 'folder', folder, maxBytes: 1 });
  await sweep(database, results);
  expect(await filesIn(folder)).toHaveLength(3);
  await eventually(async () => expect(await eraseResults(database.pool, [payer], 10)).toBe(1));
  await sweep(database, results);
  expect(await filesIn(folder)).toEqual([]);
  expect((await gateway.get(to.path, to.bearer)).json).toMatchObject({ result: null, result_pruned: true });
});

/** A runner that is pushed to, and answers as the test says; `attempt` is from 1. */
async function rawRunner(answer: (response: ServerResponse, attempt: number) => void): Promise<string> {
  let attempts = 0;
  const server = createServer((request, response) => {
    request.resume().once('end', () => answer(response, ++attempts));
  });
  return listening(server);
}

const quickly = { delivery: { backoffCapMs: 100 } };

test('a large answer of a pushed call that breaks off completes nothing: the call is delivered again', async () => {
  const database = await createDatabase();
  const url = await rawRunner((response, attempt) => {
    response.writeHead(200, { 'content-type': 'video/mp4', 'content-length': String(large.length) });
    if (attempt > 1) return response.end(large);
    response.write(large.subarray(0, resultPartBytes + 5), () => response.destroy());
  });
  const gateway = await start(database, inFolder(await newFolder()), url, quickly);
  const to = await paid(gateway);
  await eventually(async () => expect((await gateway.get(to.path)).json.state).toBe('completed'));
  expect(hashOf((await download(gateway, to)).bytes)).toBe(hashOf(large));
  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  expect(events.filter(({ type }) => type === 'delivery_failed')).toHaveLength(1);
});

test('a large answer of a pushed call that the store does not take is delivered again, and completes once it does', async () => {
  const database = await createDatabase();
  const bucket = await bucketTable();
  bucket.answers(503);
  const url = await rawRunner((response, attempt) => {
    if (attempt === 3) bucket.answers(undefined);
    response.end(large);
  });
  const gateway = await start(database, bucket.table, url, quickly);
  const to = await paid(gateway);
  await eventually(async () => expect((await gateway.get(to.path)).json.state).toBe('completed'));
  expect(hashOf((await download(gateway, to)).bytes)).toBe(hashOf(large));
  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  expect(events.filter(({ type }) => type === 'delivery_failed')).toHaveLength(2);
});

test('a pushed answer beyond what the store takes completes its call without a result', async () => {
  const database = await createDatabase();
  const url = await rawRunner((response) => void response.end(large));
  const gateway = await start(database, inFolder(await newFolder(), 'max_bytes = 5_000_000'), url);
  const to = await paid(gateway);
  await eventually(async () => expect((await gateway.get(to.path)).json.state).toBe('completed'));
  expect((await gateway.get(to.path, to.bearer)).json).toMatchObject({ result: null });
  expect((await download(gateway, to)).status).toBe(404);
});
