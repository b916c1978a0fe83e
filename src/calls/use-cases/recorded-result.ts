import type { CallState } from '../../payments/rules/payment-progress.ts';
import { sha256 } from '../../base/values/sha256.ts';
import { type CallResult, readResult } from '../store/calls.ts';
import type { LedgerDatabase } from '../../ledger/store/database.ts';

/** A completed call's result. */
export type FoundResult =
  | { readonly kind: 'found'; readonly result: CallResult }
  /** The call is not completed, or its runner's result was not kept. */
  | { readonly kind: 'none' }
  /** It was deleted. */
  | { readonly kind: 'deleted'; readonly callId: number; readonly attempt: number }
  /** What is stored is not what the ledger has: nobody gets it. */
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
