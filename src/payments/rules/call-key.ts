import type { Hex } from '../../base/values/primitives.ts';
import { type JobId, jobKey } from '../../base/values/job.ts';
import { sha256 } from '../../base/values/sha256.ts';

/** What a payment buys: a job with a body. */
export interface BoughtCall {
  /** The hash of the payment's fingerprint, hex with 0x. */
  readonly payment: string;
  readonly job: JobId;
  readonly bodySha256: string;
}

/**
 * The idempotency key of a paid call. A payment that the ledger lost, and that its payer has delivered for another body or job, has another
 * key: no runner takes that call for one that it knows. Its text begins with a hash, and that of a firing with a bracket: none has the key of the other.
 */
export function paidCallKey({ payment, job, bodySha256 }: BoughtCall): Hex {
  return sha256(`${payment}/${jobKey(job)}/${bodySha256}`);
}
