import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { exportLines } from '../../src/finance/use-cases/books/export-leaves.ts';
import type { StreamEvent } from './synthetic-ledger.ts';
import { noteSigner, openCheckpoint, parseVerifierKey } from '../../src/base/values/log/checkpoint.ts';
import { leafHash, nodeHash, RightEdge } from '../../src/base/values/log/merkle.ts';
import { encodeHash } from '../../src/ledger/store/claim-key.ts';
import { writerRole } from '../../src/ledger/store/database.ts';
import { openLane } from '../../src/ledger/store/lane.ts';
import { readLeaves } from '../../src/audit/store/log.ts';
import { sealNext } from '../../src/audit/use-cases/log/seal.ts';
import { claimsOfStream } from '../../src/audit/use-cases/verify/rows/stream-claims.ts';
import type { TestDatabase } from './database.ts';
import { newStream, refused } from './events.ts';
import { allEvents } from './ledger-faults.ts';

export const testSeed = Buffer.alloc(32, 42);
export const testSigner = noteSigner('jobs.example/log', [testSeed]);
export const testVerifier = parseVerifierKey(testSigner.verifierKeys[0]);
export const atOnce = { everyMs: 0, everyEvents: 10_000 };

/** Where an anchor keeps the checkpoints of `testSigner`, below its folder or prefix. */
export const logPlace = 'jobs.example_log';
/** An anchor that is a folder. */
export const folderTable = (folder: string): string =>
  `[[log.anchors]]\nkind = "folder"\nlocation = "${folder}"\nevery_ms = 20`;

/** The newest checkpoint of such an anchor. */
export const newestIn = (folder: string) =>
  openCheckpoint(readFileSync(path.join(folder, logPlace, 'checkpoint'), 'utf8'), testVerifier);

/** Appends meaningless events, many per command. */
export async function appendRefusals(database: TestDatabase, count: number): Promise<void> {
  const lane = openLane({ url: database.url, role: writerRole });
  for (let left = count; left > 0; left -= 100)
    await lane.append({
      stream: newStream(),
      events: Array.from({ length: Math.min(left, 100) }, () => refused()),
    });
  await lane.close();
}

/** Begins another generation of the log, as `tollbook recover` does. */
export async function beginGeneration(
  database: TestDatabase,
  generation: number,
  keptSeq: number,
): Promise<void> {
  const lane = openLane({ url: database.url, role: writerRole });
  await lane.append({
    stream: `recovery:${generation}`,
    expect: 0,
    events: [
      {
        type: 'ledger_recovered',
        data: { generation, kept_seq: keptSeq, since: 0, reason: 'forced', operator: 'ada' },
      },
    ],
  });
  await lane.close();
}

/** Seals all events. */
export async function sealAll(database: TestDatabase, signer = testSigner): Promise<void> {
  while ((await sealNext(database.pool, signer, atOnce)) === 'again');
}

/** The root over the first `size` events, computed only from their bytes. */
export async function rootOfEvents({ pool }: TestDatabase, size: number): Promise<Buffer> {
  const edge = new RightEdge();
  for (const leaf of await readLeaves(pool, 0, size)) edge.append(leafHash(leaf));
  return edge.root();
}

/** Appends the events of a synthetic ledger, in order. */
export async function appendAll(database: TestDatabase, events: readonly StreamEvent[]): Promise<void> {
  const lane = openLane({ url: database.url, role: writerRole });
  for (const { stream, event } of events) await lane.append({ stream, events: [event] });
  await lane.close();
}

/** Writes the export of a database into a file. */
export async function exportTo(file: string, { pool }: TestDatabase, fromSeq = 1): Promise<void> {
  const lines: Buffer[] = [];
  for await (const line of exportLines(pool, fromSeq)) lines.push(line);
  writeFileSync(file, Buffer.concat(lines));
}

/** Inserts the claims that a synthetic ledger must hold, which `appendAll` leaves out. */
export async function insertClaims(database: TestDatabase): Promise<void> {
  const streams = Map.groupBy(await allEvents(database.db), ({ stream }) => stream);
  const claims = [...streams.values()].flatMap(claimsOfStream);
  await database.asOwner(async (owner) => {
    for (const { claim, stream } of claims) {
      if (claim.kind === 'caller_nonce') throw new Error('a synthetic ledger has no restricted jobs');
      const { key, binding } = encodeHash(claim);
      await owner.query(
        `insert into tollbook.claim (key, binding, stream)
          values (decode($1, 'hex'), decode($2, 'hex'), tollbook.stream_key($3))`,
        [key, binding, stream],
      );
    }
  });
}

/** Whether a consistency proof shows that the tree of the old root is the beginning of the new one. */
export function isConsistent(
  old: { readonly size: number; readonly root: Buffer },
  next: { readonly size: number; readonly root: Buffer },
  proof: readonly Buffer[],
): boolean {
  if (old.size === next.size) return proof.length === 0 && old.root.equals(next.root);
  if (old.size === 0) return proof.length === 0;
  if (old.size > next.size || proof.length === 0) return false;
  const steps = Number.isInteger(Math.log2(old.size)) ? [old.root, ...proof] : [...proof];
  let [at, last] = [old.size - 1, next.size - 1];
  while (at % 2 === 1) [at, last] = [Math.floor(at / 2), Math.floor(last / 2)];
  const first = steps.shift();
  if (!first) return false;
  let [oldRoot, newRoot] = [first, first];
  for (const sibling of steps) {
    if (last === 0) return false;
    if (at % 2 === 1 || at === last) {
      oldRoot = nodeHash(sibling, oldRoot);
      newRoot = nodeHash(sibling, newRoot);
      while (at % 2 === 0 && at !== 0) [at, last] = [Math.floor(at / 2), Math.floor(last / 2)];
    } else {
      newRoot = nodeHash(newRoot, sibling);
    }
    [at, last] = [Math.floor(at / 2), Math.floor(last / 2)];
  }
  return last === 0 && oldRoot.equals(old.root) && newRoot.equals(next.root);
}
