import fc from 'fast-check';
import { expect, test } from 'vitest';
import { proveConsistency, proveEvents, rootFromTiles } from '../../../../src/audit/use-cases/log/prove.ts';
import { sealNext } from '../../../../src/audit/use-cases/log/seal.ts';
import {
  noteSigner,
  openCheckpoint,
  parseVerifierKey,
  signCheckpoint,
} from '../../../../src/base/values/log/checkpoint.ts';
import { isIncluded, leafHash } from '../../../../src/base/values/log/merkle.ts';
import {
  extendLog,
  readHead,
  readHeads,
  readLeaves,
  readLogTip,
  readUnsealed,
} from '../../../../src/audit/store/log.ts';
import { createDatabase, type TestDatabase } from '../../../support/database.ts';
import {
  appendRefusals,
  atOnce,
  beginGeneration,
  rootOfEvents,
  sealAll,
  testSigner,
  testVerifier,
  isConsistent,
} from '../../../support/log.ts';
import { propertyRuns } from '../../../support/property-runs.ts';

const origin = testSigner.name;

async function expectSoundHeads(database: TestDatabase): Promise<number[]> {
  const heads = await readHeads(database.pool, origin, -1, 10_000);
  for (const { size, root, note } of heads) {
    expect(openCheckpoint(note, testVerifier)).toEqual({ origin, size, root });
    expect(root).toEqual(await rootOfEvents(database, size));
  }
  return heads.map(({ size }) => size);
}

test('a log begins with the head of the empty tree, and grows with the ledger', async () => {
  const database = await createDatabase();
  await sealAll(database);
  await appendRefusals(database, 3);
  await sealAll(database);
  await sealAll(database);
  await appendRefusals(database, 300);
  await sealAll(database);
  expect(await expectSoundHeads(database)).toEqual([0, 3, 303]);
});

test('nothing is sealed before its time, unless many events wait', async () => {
  const database = await createDatabase();
  const slowly = { everyMs: 60_000, everyEvents: 50 };
  await sealNext(database.pool, testSigner, slowly);
  await appendRefusals(database, 49);
  await sealNext(database.pool, testSigner, slowly);
  expect(await expectSoundHeads(database)).toEqual([0]);
  await appendRefusals(database, 60);
  expect(await sealNext(database.pool, testSigner, slowly)).toBe('again');
  expect(await sealNext(database.pool, testSigner, slowly)).toBe('again');
  expect(await sealNext(database.pool, testSigner, slowly)).toBe('done');
  expect(await expectSoundHeads(database)).toEqual([0, 50, 100]);
  await database.moveClock(61);
  const unsealed = await readUnsealed(database.pool, origin);
  expect(unsealed).toMatchObject({ count: 9 });
  expect(unsealed.oldestMs).toBeGreaterThan(60_000);
  await sealNext(database.pool, testSigner, slowly);
  expect(await expectSoundHeads(database)).toEqual([0, 50, 100, 109]);
  expect(await readUnsealed(database.pool, origin)).toEqual({ count: 0, oldestMs: 0 });
});

test('eight concurrent sealers over a growing ledger sign one head of each size, all of one history', async () => {
  const database = await createDatabase();
  let isGrowing = true;
  const sealing = Array.from({ length: 8 }, async (_, i) => {
    while (isGrowing) await sealNext(database.pool, testSigner, { everyMs: 0, everyEvents: 20 + i });
  });
  for (let round = 0; round < 30; round++) await appendRefusals(database, 37);
  isGrowing = false;
  await Promise.all(sealing);
  await sealAll(database);
  const sizes = await expectSoundHeads(database);
  expect(sizes.at(-1)).toBe(30 * 37);
  expect(new Set(sizes).size).toBe(sizes.length);
});

test('after a recovery the log has another name, whose first head covers the recovery and all events before it', async () => {
  const database = await createDatabase();
  await appendRefusals(database, 3);
  await sealAll(database);
  await appendRefusals(database, 40);
  const before = await readLogTip(database.pool, origin);
  await beginGeneration(database, 2, 43);
  await appendRefusals(database, 5);
  const small = { everyMs: 0, everyEvents: 10 };
  await sealNext(database.pool, testSigner, small);
  const second = testSigner.renamed(`${origin}/2`);
  const head = (await readHead(database.pool, second.name))!;
  expect(openCheckpoint(head.note, parseVerifierKey(second.verifierKeys[0]))).toEqual({
    origin: second.name,
    size: 44,
    root: await rootOfEvents(database, 44),
  });
  // a sealer that had read the log before signs nothing under the old name
  const late = {
    ...before,
    generation: 1,
    origin,
    from: 44,
    size: 44,
    root: head.root,
    note: 'late',
    rows: [],
  };
  expect(await extendLog(database.pool, late)).toBe(false);
  expect(await expectSoundHeads(database)).toEqual([3]);
  const proofs = await proveEvents(database.pool, head, [2]);
  expect(isIncluded({ index: 1, ...head }, proofs[0]!.leafHash, proofs[0]!.hashes)).toBe(true);
});

test('a sealer that another sealer preceded commits nothing', async () => {
  const database = await createDatabase();
  await appendRefusals(database, 5);
  const tip = await readLogTip(database.pool, origin);
  await sealAll(database);
  const late = {
    generation: 1,
    ...tip,
    origin,
    from: tip.size,
    size: 4,
    root: Buffer.alloc(32),
    note: 'late',
    rows: [],
  };
  expect(await extendLog(database.pool, late)).toBe(false);
  expect(await extendLog(database.pool, { ...late, from: 5, size: 5 })).toBe(false);
  await expect(extendLog(database.pool, { ...late, from: 5, size: 6 })).rejects.toThrow(/no tree of 6/);
  expect((await readHead(database.pool, origin))?.size).toBe(5);
});

test('the writer role cannot record a tree head that the events do not have', async () => {
  const database = await createDatabase();
  await appendRefusals(database, 5);
  const root = await rootOfEvents(database, 5);
  const note = signCheckpoint({ origin, size: 5, root }, testSigner);
  const sound = { origin, generation: 1, from: 0, size: 5, root, note };
  const other = Buffer.alloc(32, 7);
  for (const [garbage, reason] of [
    [{ root: other, note: signCheckpoint({ origin, size: 5, root: other }, testSigner) }, /another root/],
    [{ root: Buffer.alloc(0), note: 'x' }, /another root/],
    [{ note: signCheckpoint({ origin, size: 4, root }, testSigner) }, /does not name the tree/],
    [{ note: 'x' }, /does not name the tree/],
    [{ size: 9_007_199_254_740_991 }, /no tree of/],
    [{ size: -1 }, /no tree of/],
  ] as const)
    await expect(extendLog(database.pool, { ...sound, ...garbage })).rejects.toThrow(reason);
  expect((await readLogTip(database.pool, origin)).size).toBe(0);
  expect(await extendLog(database.pool, sound)).toBe(true);
  await appendRefusals(database, 600);
  await sealAll(database);
  await expectSoundHeads(database);
});

test('heads can be neither changed nor deleted, even by the owner', async () => {
  const database = await createDatabase();
  await sealAll(database);
  for (const change of [
    `update tollbook.log_head set note = ''`,
    'delete from tollbook.log_head',
    'truncate tollbook.log_head',
  ])
    await expect(database.asOwner((owner) => owner.query(change))).rejects.toThrow(/append-only/);
});

test('a log under a new name starts with a head of all events, and the old log ends', async () => {
  const database = await createDatabase();
  await appendRefusals(database, 4);
  await sealAll(database);
  const second = noteSigner('jobs.example/log/2', [Buffer.alloc(32, 1)]);
  await sealAll(database, second);
  const head = await readHead(database.pool, second.name);
  expect(head).toMatchObject({ size: 4, root: (await readHead(database.pool, origin))?.root });
});

test('a ledger that lost an event is not sealed', async () => {
  const database = await createDatabase();
  await appendRefusals(database, 4);
  await database.asOwner(async (owner) => {
    await owner.query('alter table tollbook.event disable trigger all');
    await owner.query('delete from tollbook.event where seq = 2');
  });
  await expect(sealNext(database.pool, testSigner, atOnce)).rejects.toThrow(/some are missing/);
});

test('the stored tiles prove every event and every earlier tree, for steps of any size', async () => {
  const database = await createDatabase();
  await appendRefusals(database, 1_400);
  for (const everyEvents of [1, 254, 2, 300, 700])
    await sealNext(database.pool, testSigner, { everyMs: 0, everyEvents });
  const head = (await readHead(database.pool, origin))!;
  expect(head.size).toBe(1_257);
  const leaves = await readLeaves(database.pool, 0, head.size);
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: head.size }), async (seq) => {
      const [proof] = await proveEvents(database.pool, head, [seq]);
      expect(proof!.leafHash).toEqual(leafHash(leaves[seq - 1]!));
      expect(isIncluded({ index: seq - 1, ...head }, proof!.leafHash, proof!.hashes)).toBe(true);
      const old = { size: seq, root: await rootFromTiles(database.pool, seq) };
      expect(isConsistent(old, head, await proveConsistency(database.pool, seq, head))).toBe(true);
    }),
    propertyRuns(15),
  );
});
