import { isHex32 } from '../../base/values/primitives.ts';
import { foldQuote, paidPayment } from '../../payments/rules/quote-state.ts';
import { sha256 } from '../../base/values/sha256.ts';
import { readStream } from '../../ledger/store/streams.ts';
import type { LedgerDatabase } from '../../ledger/store/database.ts';
import type { ResultStore } from '../peers/results/result-store.ts';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import { type ByteRange, readRange, readWhole } from './large-result.ts';
import type { CallState } from '../../payments/rules/payment-progress.ts';
import { type CallResult, readResult } from '../store/calls.ts';
import type { LedgerReader } from '../../ledger/store/ledger.ts';

export interface ResultPorts extends LedgerReader {
  readonly results: ResultStore | undefined;
  readonly log: OperatorLog;
}

/** A call's result as bytes, in the database or in the result store. */
export interface ResultFile {
  readonly contentType: string | undefined;
  readonly bytes: number;
  /** Hex with 0x. */
  readonly sha256: string;
  /** What it yields is whole, or it throws a ResultUnreadableError. */
  readonly read: (range: ByteRange) => AsyncGenerator<Buffer>;
}

/** The result of the call that a quote's payment bought; undefined if there is none, not yet, or not any more, and where it is not the one that the ledger has. */
export async function findResult(context: ResultPorts, digest: string): Promise<ResultFile | undefined> {
  if (!isHex32(digest)) return undefined;
  const call = paidPayment(foldQuote((await readStream(context.pool, digest)).events))?.call;
  const found = await findRecordedResult(context, call);
  if (!call || found.kind !== 'found') return undefined;
  const { contentType, body, stored, leaseId } = found.result;
  if (!stored) {
    const read = async function* ({ from, end }: ByteRange): AsyncGenerator<Buffer> {
      yield body.subarray(from, end);
    };
    return { contentType, bytes: body.length, sha256: sha256(body), read };
  }
  const { results, log } = context;
  if (!results) throw new Error('a large result is in a result store, and the configuration names none');
  const upload = { callId: call.callId, leaseId };
  const read = (range: ByteRange): AsyncGenerator<Buffer> =>
    range.from === 0 && range.end === stored.bytes
      ? readWhole({ results, log }, upload, stored)
      : readRange({ results, log }, upload, stored, range);
  return { contentType, ...stored, read };
}

/** A completed call's result. */
export type FoundResult =
  | { readonly kind: 'found'; readonly result: CallResult }
  /** The call is not completed, or its runner's result was not kept. */
  | { readonly kind: 'none' }
  | { readonly kind: 'deleted'; readonly callId: number; readonly attempt: number }
  /** The stored result differs from the ledger's hash: no client gets it. */
  | { readonly kind: 'altered' };

/** Reads the result of a call, and compares it with what the ledger says of it. A large one is compared again while it is read. */
export async function findRecordedResult(
  { db }: { readonly db: LedgerDatabase },
  call: CallState | undefined,
): Promise<FoundResult> {
  if (call?.status !== 'completed' || call.attempt === undefined || !call.result) return { kind: 'none' };
  const { callId, attempt, result: recorded } = call;
  const result = await readResult(db, callId, attempt);
  if (!result) return { kind: 'deleted', callId, attempt };
  const { sha256: hash, bytes } = result.stored ?? {
    sha256: sha256(result.body),
    bytes: result.body.length,
  };
  const isRecorded = hash === recorded.sha256 && bytes === recorded.bytes;
  return isRecorded ? { kind: 'found', result } : { kind: 'altered' };
}
