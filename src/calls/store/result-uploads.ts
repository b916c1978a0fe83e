import type pg from 'pg';
import { callFunction, callTableFunction } from '../../ledger/store/functions.ts';
import type { LeaseName } from './calls.ts';

/** A result, as the ledger has it. */
export interface StoredResult {
  readonly bytes: number;
  /** Hex with 0x. */
  readonly sha256: string;
}

/** Notes that a part is about to be sent to the result store, so that it can be found and deleted. */
export function noteResultPart(pool: pg.Pool, { callId, leaseId }: LeaseName, part: number): Promise<void> {
  return callFunction(pool, 'note_result_part', [callId, leaseId, part]);
}

/**
 * Stores that the result of a lease is in the result store, before `completed` is recorded. Undefined once it is stored; if the lease has
 * another result already, that one, which is kept.
 * @param head of a route's answer
 */
export async function putStoredResult(
  pool: pg.Pool,
  { callId, leaseId, attempt }: LeaseName & { readonly attempt: number },
  contentType: string | undefined,
  { bytes, sha256 }: StoredResult,
  head?: string,
): Promise<StoredResult | undefined> {
  const hash = Buffer.from(sha256.slice(2), 'hex');
  const [kept] = await callTableFunction(pool, 'put_stored_result', [
    callId,
    attempt,
    leaseId,
    contentType ?? null,
    bytes,
    hash,
    head ?? null,
  ]);
  return kept;
}

/** Up to `max` uploads that no receipt leads to any more, or ever did. */
export async function findUnusedUploads(
  pool: pg.Pool,
  max: number,
): Promise<(LeaseName & { readonly parts: number })[]> {
  const rows = await callTableFunction(pool, 'unused_result_uploads', [max]);
  return rows.map(({ call_id: callId, lease_id: leaseId, parts }) => ({ callId, leaseId, parts }));
}

/** Its parts are deleted. */
export function forgetUpload(pool: pg.Pool, { callId, leaseId }: LeaseName): Promise<void> {
  return callFunction(pool, 'forget_result_upload', [callId, leaseId]);
}
