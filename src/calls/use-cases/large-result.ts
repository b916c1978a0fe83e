import { createHash } from 'node:crypto';
import { partsOf, resultPartBytes } from '../../base/values/result-parts.ts';
import type { ResultStore } from '../peers/results/result-store.ts';
import {
  findUnusedUploads,
  forgetUpload,
  noteResultPart,
  type StoredResult,
} from '../store/result-uploads.ts';
import type pg from 'pg';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import type { LeaseName } from '../store/calls.ts';

export interface StoringPorts {
  readonly pool: pg.Pool;
  readonly results: ResultStore;
  readonly log: OperatorLog;
}

type Checked = { readonly kind: 'sound' | 'mismatch' | 'unavailable' };

/** Numbers and a UUID alone: no runner can name another place of the store. */
function keyOf({ callId, leaseId }: LeaseName, part: number): string {
  return `results/${callId}/${leaseId}/${part}`;
}

/** Keeps one part of a large result; the same part, sent again, replaces it. */
export async function putPart(
  { pool, results, log }: StoringPorts,
  upload: LeaseName,
  part: number,
  bytes: Buffer,
): Promise<{ readonly kind: 'kept' | 'unavailable' }> {
  // first, so that no part is ever lost from sight
  await noteResultPart(pool, upload, part);
  const answer = await results.put(keyOf(upload, part), bytes);
  if (answer.kind === 'put') return { kind: 'kept' };
  log.error(
    { call_id: upload.callId, part, cause: answer.cause },
    'a part of a large result could not be stored',
  );
  return { kind: 'unavailable' };
}

/** Reads the whole of what was stored, and compares it with what its runner says of it. */
export async function checkParts(
  context: StoringPorts,
  upload: LeaseName,
  said: StoredResult,
): Promise<Checked> {
  const hash = createHash('sha256');
  for (let part = 0; part < partsOf(said.bytes); part++) {
    const answer = await context.results.get(keyOf(upload, part), 0, resultPartBytes);
    if (answer.kind === 'failed') return unreadable(context, upload, answer.cause);
    if (answer.kind === 'none' || answer.bytes.length !== lengthOf(part, said.bytes))
      return { kind: 'mismatch' };
    hash.update(answer.bytes);
  }
  return { kind: `0x${hash.digest('hex')}` === said.sha256 ? 'sound' : 'mismatch' };
}

function unreadable({ log }: Pick<StoringPorts, 'log'>, { callId }: LeaseName, cause: string): Checked {
  log.error({ call_id: callId, cause }, 'a large result could not be read from the result store');
  return { kind: 'unavailable' };
}

/** Of all parts but the last one: `resultPartBytes`. */
function lengthOf(part: number, bytes: number): number {
  return Math.min(resultPartBytes, bytes - part * resultPartBytes);
}

/** Bytes of a result, `from` included and `end` excluded. */
export interface ByteRange {
  readonly from: number;
  readonly end: number;
}

/** The result store is unreachable, or has lost a part. It is logged. */
export class ResultUnreadableError extends Error {}

/** A reader of a result holds this much of it. */
const pieceBytes = 524_288;

/**
 * The whole of a large result, piece by piece.
 * @throws if a part cannot be read, or if they differ from the ledger's hash: before the last piece, so that no reader takes them for whole
 */
export async function* readWhole(
  context: Pick<StoringPorts, 'results' | 'log'>,
  upload: LeaseName,
  { bytes, sha256 }: StoredResult,
): AsyncGenerator<Buffer> {
  const hash = createHash('sha256');
  let held: Buffer | undefined;
  for await (const piece of readParts(context, upload, { from: 0, end: bytes })) {
    hash.update(piece);
    if (held) yield held;
    held = piece;
  }
  if (`0x${hash.digest('hex')}` !== sha256) {
    unreadable(context, upload, 'altered');
    throw new ResultUnreadableError('the parts of a large result are not what was stored');
  }
  if (held) yield held;
}

interface Comparison {
  readonly atMs: number;
  readonly done: Promise<void>;
}

/** The results whose parts were compared with the ledger's hash of late, by store and upload. */
const comparedOf = new WeakMap<ResultStore, Map<string, Comparison>>();
/** A part that was still on its way when its result was completed comes within that time. */
const comparedForMs = 60_000;
const mostCompared = 1_000;

/**
 * A part of a large result, piece by piece: once the whole was compared with what the ledger has, by this process within the last minute.
 * @throws as `readWhole()` does, before the first piece, and if a part cannot be read
 */
export async function* readRange(
  context: Pick<StoringPorts, 'results' | 'log'>,
  upload: LeaseName,
  whole: StoredResult,
  range: ByteRange,
): AsyncGenerator<Buffer> {
  await compareWhole(context, upload, whole);
  yield* readParts(context, upload, range);
}

/** Those who read ranges of one result at the same time share the comparison. */
function compareWhole(
  context: Pick<StoringPorts, 'results' | 'log'>,
  upload: LeaseName,
  whole: StoredResult,
): Promise<void> {
  const compared = comparedOf.get(context.results) ?? new Map<string, Comparison>();
  comparedOf.set(context.results, compared);
  const name = `${upload.callId}/${upload.leaseId}`;
  const known = compared.get(name);
  const nowMs = performance.now();
  if (known && nowMs - known.atMs < comparedForMs) return known.done;
  compared.delete(name);
  const done = readToEnd(readWhole(context, upload, whole));
  compared.set(name, { atMs: nowMs, done });
  done.catch(() => compared.delete(name));
  for (const [oldest] of compared) {
    if (compared.size <= mostCompared) break;
    compared.delete(oldest);
  }
  return done;
}

async function readToEnd(pieces: AsyncGenerator<Buffer>): Promise<void> {
  while (!(await pieces.next()).done);
}

/**
 * Bytes of a large result, piece by piece.
 * @throws if a part cannot be read: a reader must not take the beginning for the whole
 */
async function* readParts(
  { results, log }: Pick<StoringPorts, 'results' | 'log'>,
  upload: LeaseName,
  { from, end }: ByteRange,
): AsyncGenerator<Buffer> {
  for (let at = from; at < end;) {
    const part = Math.floor(at / resultPartBytes);
    const within = at - part * resultPartBytes;
    const maxBytes = Math.min(pieceBytes, resultPartBytes - within, end - at);
    const answer = await results.get(keyOf(upload, part), within, maxBytes);
    const bytes = answer.kind === 'got' ? answer.bytes : undefined;
    if (!bytes?.length) {
      const cause = answer.kind === 'failed' ? answer.cause : 'missing';
      unreadable({ log }, upload, cause);
      throw new ResultUnreadableError('a large result could not be read');
    }
    yield bytes;
    at += bytes.length;
  }
}

export type PartWriter = ReturnType<typeof createPartWriter>;

/** Takes a result piece by piece, and keeps it part by part: of a result of any length it holds one part. */
export function createPartWriter(context: StoringPorts, upload: LeaseName, maxBytes: number) {
  const hash = createHash('sha256');
  let pieces: Buffer[] = [];
  let heldBytes = 0;
  let part = 0;
  let bytes = 0;
  const put = async (whole: Buffer): Promise<void> => {
    const kept = await putPart(context, upload, part++, whole);
    if (kept.kind === 'unavailable') throw new Error('the result store is unavailable');
  };
  const flushWhole = async (): Promise<void> => {
    const held = Buffer.concat(pieces, heldBytes);
    const wholeBytes = held.length - (held.length % resultPartBytes);
    pieces = [held.subarray(wholeBytes)];
    heldBytes = held.length - wholeBytes;
    for (let at = 0; at < wholeBytes; at += resultPartBytes)
      await put(held.subarray(at, at + resultPartBytes));
  };
  return {
    maxBytes,
    /** Undefined if the next piece may come immediately, else resolves when it may. Rejects if the result store is unavailable. */
    add(piece: Buffer): Promise<void> | undefined {
      hash.update(piece);
      bytes += piece.length;
      pieces.push(piece);
      heldBytes += piece.length;
      return heldBytes < resultPartBytes ? undefined : flushWhole();
    },
    /** Keeps the last part. Rejects as `add()` does. */
    async finish(): Promise<StoredResult> {
      if (heldBytes > 0) await put(Buffer.concat(pieces, heldBytes));
      return { bytes, sha256: `0x${hash.digest('hex')}` };
    },
  };
}

const uploadsAtOnce = 50;

/**
 * Deletes the parts of uploads that no receipt leads to; returns whether there may be more.
 * @throws if parts could not be deleted: after those of all other uploads
 */
export async function removeUnusedUploads(context: StoringPorts): Promise<boolean> {
  const uploads = await findUnusedUploads(context.pool, uploadsAtOnce);
  const failures: string[] = [];
  for (const upload of uploads) {
    const cause = await removeParts(context, upload);
    if (cause === undefined) await forgetUpload(context.pool, upload);
    else failures.push(`call ${upload.callId}: ${cause}`);
  }
  if (failures.length > 0) throw new Error(`parts could not be deleted: ${failures.join(', ')}`);
  return uploads.length === uploadsAtOnce;
}

/** Undefined once they are deleted, else the cause. */
async function removeParts(
  { results }: StoringPorts,
  upload: LeaseName & { readonly parts: number },
): Promise<string | undefined> {
  for (let part = 0; part < upload.parts; part++) {
    const removed = await results.remove(keyOf(upload, part));
    if (removed.kind === 'failed') return removed.cause;
  }
  return undefined;
}
