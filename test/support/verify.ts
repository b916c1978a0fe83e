import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { firstProblem } from './first-problem.ts';
import { verifyFile } from '../../src/audit/use-cases/verify/verify-file.ts';
import { ExportVerifier, verdictLines } from '../../src/audit/use-cases/verify/verify.ts';
import { readHead } from '../../src/audit/store/log.ts';
import { createDatabase, type TestDatabase } from './database.ts';
import { expectIndependent, verifyIndependently } from './independent.ts';
import { sealAll, appendAll, testSigner, testVerifier } from './log.ts';
import { temporaryFolder } from './program.ts';
import { leavesOf, type StreamEvent } from './synthetic-ledger.ts';
import type { Tampering } from './tampering.ts';
import { countByType } from '../../src/ledger/rules/counters.ts';
import { signCheckpoint } from '../../src/base/values/log/checkpoint.ts';
import { leafHash, RightEdge } from '../../src/base/values/log/merkle.ts';
import { canonicalJson } from '../../src/base/values/canonical-json.ts';

export const checkpointFiles = ['old.ckpt', 'new.ckpt'] as const;

/** A ledger with these events, sealed after some of them and at its end, with both checkpoints in a directory. */
export async function sealedLedger(
  all: readonly StreamEvent[],
  sealedAt: number,
): Promise<{ database: TestDatabase; dir: string }> {
  const database = await createDatabase();
  const dir = temporaryFolder();
  await appendAll(database, all.slice(0, sealedAt));
  await keepCheckpoint(database, path.join(dir, 'old.ckpt'));
  await appendAll(database, all.slice(sealedAt));
  await keepCheckpoint(database, path.join(dir, 'new.ckpt'));
  return { database, dir };
}

/** Writes the export of a ledger with these events, and the checkpoint of its end, into a directory, without a database: its root. */
export function writeExport(dir: string, events: readonly StreamEvent[]): Buffer {
  const leaves = [...leavesOf(events, events.length)];
  const edge = new RightEdge();
  for (const leaf of leaves) edge.append(leafHash(Buffer.from(leaf)));
  const counters = Object.fromEntries(countByType(events.map(({ event }) => event)));
  const end = canonicalJson({ counters, export: 1, seq: leaves.length });
  writeFileSync(path.join(dir, 'export.jsonl'), `${[...leaves, end].join('\n')}\n`);
  const head = { origin: testSigner.name, size: leaves.length, root: edge.root() };
  writeFileSync(path.join(dir, 'new.ckpt'), signCheckpoint(head, testSigner));
  return head.root;
}

/** Seals a database and writes its newest checkpoint into a file. */
export async function keepCheckpoint(
  database: TestDatabase,
  file: string,
  signer = testSigner,
): Promise<void> {
  await sealAll(database, signer);
  writeFileSync(file, (await readHead(database.pool, signer.name))!.note);
}

/** Falsifies a database as its superuser, with triggers off. */
export async function tamper(database: TestDatabase, { change }: Tampering): Promise<void> {
  await database.asOwner(async (owner) => {
    await owner.query('set session_replication_role = replica');
    await change(owner);
  });
}

/** The results of both verifiers for `export.jsonl`, given only the checkpoints and the key. */
export async function verifyBoth(dir: string, checkpoints: readonly string[] = checkpointFiles) {
  const file = path.join(dir, 'export.jsonl');
  const given = checkpoints.map((source) => ({ source, note: readFileSync(path.join(dir, source), 'utf8') }));
  const verdict = await verifyFile(file, new ExportVerifier(given, testVerifier));
  const independent = await verifyIndependently(
    file,
    checkpoints.map((name) => path.join(dir, name)),
  );
  return { isSound: verdict.isSound, text: verdictLines(verdict).join('\n'), independent };
}

/**
 * What the ledger check finds in a ledger with these events, or `sound`. The independent verifier must call it sound as well, or wrong from the
 * same event on; it compares a payment with its quote only if it starts, which may be the next event.
 */
export async function verdictOn(events: readonly StreamEvent[]): Promise<string> {
  const leaves = [...leavesOf(events, events.length)];
  const own = firstProblem(leaves.map((leaf) => Buffer.from(leaf)));
  const file = path.join(temporaryFolder(), 'export.jsonl');
  writeFileSync(file, `${leaves.join('\n')}\n`);
  const independent = await verifyIndependently(file, []);
  const where = own && new RegExp(`WRONG first at event (?:${own.seq}|${own.seq + 1}):`);
  expectIndependent(independent, own === undefined, where);
  return own?.words ?? 'sound';
}
