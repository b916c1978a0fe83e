import { asRunner, leaseOne, paid } from '../../support/leases.ts';
import { randomBytes } from 'node:crypto';
import { chmod, readdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import { resultPartBytes } from '../../../src/base/values/result-parts.ts';
import { createResultStore } from '../../../src/calls/peers/results/create-result-store.ts';
import { createRunner, job as runnerJob, type Result } from '../../../src/runner/index.ts';
import { pruneRows } from '../../../src/ledger/store/pruning.ts';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { runnerSecret } from '../../support/gateway.ts';
import { expectSoundLedger } from '../../support/invariants.ts';
import { eventually } from '../../support/wait.ts';
import {
  otherToken,
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

const start = starter(useChain());

test.each(['folder', 's3'])(
  'a large result in a store of kind %s is on its receipt with hash and length, and is read whole or in ranges only by who paid',
  async (kind) => {
    const database = await createDatabase();
    const table = kind === 's3' ? (await bucketTable()).table : inFolder(await newFolder());
    const gateway = await start(database, leased + table);
    const to = await paid(gateway);
    const lease = await leaseOne(gateway);
    await sendAll(gateway, lease, large);
    expect(await complete(gateway, lease, named(large))).toMatchObject({ status: 200 });
    // sent again, as after a lost answer
    expect(await complete(gateway, lease, named(large))).toMatchObject({ status: 200 });

    const receipt = await gateway.get(to.path, to.bearer);
    expect(receipt.json).toMatchObject({
      state: 'completed',
      result: { ...named(large), url: `${gateway.url}${to.path}/result` },
    });
    const whole = await download(gateway, to);
    expect([whole.status, hashOf(whole.bytes)]).toEqual([200, hashOf(large)]);
    expect(whole.headers.get('content-type')).toBe('video/mp4');
    expect(whole.headers.get('content-disposition')).toBe('attachment');
    expect(whole.headers.get('content-security-policy')).toBe("default-src 'none'; sandbox");
    const from = resultPartBytes - 10;
    const part = await download(gateway, to, { range: `bytes=${from}-${from + 99}` });
    expect([part.status, part.headers.get('content-range')]).toEqual([
      206,
      `bytes ${from}-${from + 99}/${large.length}`,
    ]);
    expect(part.bytes.equals(large.subarray(from, from + 100))).toBe(true);
    const end = await download(gateway, to, { range: 'bytes=-7' });
    expect(end.bytes.equals(large.subarray(-7))).toBe(true);
    expect((await download(gateway, to, { range: `bytes=${large.length}-` })).status).toBe(416);
    expect((await download(gateway, { ...to, bearer: {} })).status).toBe(401);
    const wrong = { authorization: `Bearer ${'a'.repeat(43)}` };
    expect((await download(gateway, { ...to, bearer: wrong })).status).toBe(401);

    const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
    const completed = events.find(({ type }) => type === 'completed');
    expect(completed?.data).toMatchObject({ result_bytes: large.length, result_sha256: hashOf(large) });
  },
);

test('a completion whose hash or length is not that of the parts is refused, and the lease continues', async () => {
  const gateway = await start(await createDatabase(), leased + inFolder(await newFolder()));
  const to = await paid(gateway);
  const lease = await leaseOne(gateway);
  const bytes = randomBytes(resultPartBytes + 5);
  await sendAll(gateway, lease, bytes);
  const lies = [
    { ...named(bytes), sha256: hashOf(Buffer.from('another')) },
    { ...named(bytes), bytes: bytes.length - 1 },
    { ...named(bytes), bytes: bytes.length + 1 },
    { ...named(bytes), bytes: 3 * resultPartBytes },
  ];
  for (const lie of lies)
    expect(await complete(gateway, lease, lie)).toMatchObject({
      status: 422,
      json: { code: 'result_mismatch' },
    });
  expect((await gateway.get(to.path, to.bearer)).json).toMatchObject({ state: 'delivered', result: null });
  expect(await complete(gateway, lease, named(bytes))).toMatchObject({ status: 200 });
});

test('parts of another runner, of a lost lease, with a path for a name, or beyond the limit are refused and stored nowhere', async () => {
  const database = await createDatabase();
  const folder = await newFolder();
  const gateway = await start(database, leased + inFolder(folder, 'max_bytes = 5_000_000'));
  await paid(gateway);
  const lease = await leaseOne(gateway);
  const bytes = randomBytes(100);
  const stranger = { ...lease, lease_id: '00000000-0000-4000-8000-000000000000' };
  expect(await sendPart(gateway, lease, 0, bytes, otherToken)).toMatchObject({ status: 409 });
  expect(await sendPart(gateway, stranger, 0, bytes)).toMatchObject({ status: 409 });
  expect(await sendPart(gateway, { ...lease, lease_id: '../../../etc' }, 0, bytes)).toMatchObject({
    status: 400,
  });
  for (const part of ['..%2f..%2fetc', '-1', '1.5', '%2e%2e'])
    expect([400, 404]).toContain((await sendPart(gateway, lease, part, bytes)).status);
  expect(await sendPart(gateway, lease, 2, bytes)).toMatchObject({ status: 413 });
  expect((await sendPart(gateway, lease, 0, randomBytes(resultPartBytes + 1))).status).toBe(413);
  expect((await sendPart(gateway, lease, 0, bytes, 'none')).status).toBe(401);
  const tooLong = { ...named(bytes), bytes: 5_000_001 };
  expect(await complete(gateway, lease, tooLong)).toMatchObject({ status: 413 });
  expect(await filesIn(folder)).toEqual([]);
  expect((await database.pool.query('select from tollbook.result_upload')).rowCount).toBe(0);
});

test('a gateway without a result store takes no parts and tells its runners its limit', async () => {
  const gateway = await start(await createDatabase(), leased);
  await paid(gateway);
  const leases = await asRunner(gateway, '/runner/leases', { max: 1, lease_secs: 60, wait_secs: 30 });
  const [lease] = leases.json.calls;
  expect(lease.metadata['X-NET-MAX-RESULT-BYTES']).toBe('1048576');
  expect(await sendPart(gateway, lease, 0, large.subarray(0, 10))).toMatchObject({
    status: 413,
    json: { code: 'result_too_large' },
  });
});

test('while the store takes nothing a part is refused for later, nothing is left of it, and the call waits', async () => {
  const folder = await newFolder();
  const gateway = await start(await createDatabase(), leased + inFolder(path.join(folder, 'inner')));
  await paid(gateway);
  const lease = await leaseOne(gateway);
  const { asFull } = await fullDisk(folder);
  await asFull(async () => {
    const refused = await sendPart(gateway, lease, 0, large.subarray(0, 100));
    expect(refused).toMatchObject({ status: 503, json: { code: 'result_store_unavailable' } });
    expect(refused.headers.get('retry-after')).toBe('5');
  });
  expect(await filesIn(folder)).toEqual([]);
  expect((await sendPart(gateway, lease, 0, large.subarray(0, 100))).status).toBe(200);
});

/** A folder in which nothing can be created, as on a full disk; root may write anywhere, so a file stands in the way. */
async function fullDisk(folder: string) {
  return {
    async asFull(work: () => Promise<void>): Promise<void> {
      const inTheWay = path.join(folder, 'inner');
      await writeFile(inTheWay, '');
      await chmod(inTheWay, 0o400);
      try {
        await work();
      } finally {
        await rm(inTheWay, { force: true });
      }
    },
  };
}

test('parts that were never completed are deleted after an hour, those of a running lease and of a kept result are not, and a result goes with its retention', async () => {
  const database = await createDatabase();
  const folder = await newFolder();
  const gateway = await start(database, leased + inFolder(folder));
  const results = createResultStore({ kind: 'folder', folder, maxBytes: 1 });
  const to = await paid(gateway);
  const lost = await leaseOne(gateway);
  await sendPart(gateway, lost, 0, large.subarray(0, 1_000));
  await database.moveClock(120);
  const lease = await leaseOne(gateway);
  expect(lease.lease_id).not.toBe(lost.lease_id);
  const bytes = large.subarray(0, resultPartBytes + 1);
  await sendAll(gateway, lease, bytes);
  expect(await filesIn(folder)).toHaveLength(3);
  await sweep(database, results);
  expect(await filesIn(folder)).toHaveLength(3);
  await database.moveClock(7_300);
  await sweep(database, results);
  expect(await filesIn(folder)).toHaveLength(2);
  expect(await complete(gateway, lease, named(bytes))).toMatchObject({ status: 200 });
  await sweep(database, results);
  expect(hashOf((await download(gateway, to)).bytes)).toBe(hashOf(bytes));

  await database.moveClock(31 * 86_400);
  expect(await pruneRows(database.pool, 'call_results', 30 * 86_400, 10)).toBe(1);
  await sweep(database, results);
  expect(await readdir(folder)).toEqual([]);
  expect((await database.pool.query('select from tollbook.result_upload')).rowCount).toBe(0);
  const receipt = await gateway.get(to.path, to.bearer);
  expect(receipt.json).toMatchObject({ result: null, result_pruned: true });
  expect((await download(gateway, to)).status).toBe(404);
});

/** A runner of the library with one job. */
function libraryRunner(handler: () => Result) {
  const runner = createRunner({ jobs: [runnerJob({ serviceId: 1, jobIndex: 0, on: { x402: handler } })] });
  onTestFinished(() => runner.stop({ graceMs: 0 }));
  return runner;
}

const inPieces = (bytes: Buffer): Readable =>
  Readable.from(
    Array.from({ length: Math.ceil(bytes.length / 100_000) }, (_, at) =>
      bytes.subarray(at * 100_000, (at + 1) * 100_000),
    ),
  );

test.each([
  ['a buffer', (): Result => large],
  ['a stream', (): Result => inPieces(large)],
  ['a typed stream', (): Result => ({ contentType: 'video/mp4', body: inPieces(large) })],
])('%s beyond a mebibyte from a handler of a runner that leases reaches who paid', async (_, handler) => {
  const gateway = await start(await createDatabase(), leased + inFolder(await newFolder()));
  void libraryRunner(handler).poll({ gatewayUrl: gateway.url, token: runnerSecret });
  const to = await paid(gateway);
  await eventually(async () => expect((await gateway.get(to.path)).json.state).toBe('completed'));
  expect(hashOf((await download(gateway, to)).bytes)).toBe(hashOf(large));
});

test.each(['folder', 's3'])(
  'the large answer of a runner that is pushed to goes into a store of kind %s, part by part',
  async (kind) => {
    const database = await createDatabase();
    const runner = libraryRunner(() => inPieces(large));
    const { url } = await runner.listen({ secret: runnerSecret });
    const table = kind === 's3' ? (await bucketTable()).table : inFolder(await newFolder());
    const gateway = await start(database, table, url);
    const to = await paid(gateway);
    await eventually(async () => expect((await gateway.get(to.path)).json.state).toBe('completed'));
    expect((await gateway.get(to.path, to.bearer)).json.result).toMatchObject({
      bytes: large.length,
      sha256: hashOf(large),
    });
    expect(hashOf((await download(gateway, to)).bytes)).toBe(hashOf(large));
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  },
);

test('a result beyond what the gateway takes is a dead letter of its runner, however it is delivered', async () => {
  const runner = libraryRunner(() => large);
  const { url } = await runner.listen({ secret: runnerSecret });
  const pushed = await start(await createDatabase(), '', url);
  const to = await paid(pushed);
  await eventually(async () => expect((await pushed.get(to.path)).json.state).toBe('dead_lettered'));
});
