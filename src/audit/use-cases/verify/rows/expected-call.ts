import type { JobId } from '../../../../base/values/job.ts';
import type { EncodedClaim } from '../../../../ledger/store/claim-key.ts';
import type { Firing } from '../../../../base/values/triggers/trigger.ts';

/** The states in which the outbox may have a call. */
export type OutboxStatus = 'pending' | 'watched' | 'ready' | 'leased' | 'unpaid' | 'dead';

/** The row of the outbox that events make. */
export interface ExpectedCall {
  /** The payment that it is found by, as `paymentKey()` names it, or the idempotency key of a trigger. */
  readonly payment: string;
  /** What the runner of a paid call gets, as `paidCallKey()` makes it; null for a call that no payment has bought. */
  readonly idempotencyKey: string | null;
  readonly stream: string;
  readonly job: JobId;
  /** Null for a call that no payment has bought. */
  readonly token: { readonly network: string; readonly asset: string; readonly symbol: string } | null;
  readonly caller: string | null;
  readonly trigger: Firing | null;
  /** What its row keeps of its payment's claims. */
  readonly claims: readonly EncodedClaim[];
  /** Undefined before the call was enqueued: no event names it. */
  readonly callId: number | undefined;
  readonly statuses: readonly OutboxStatus[];
  /** A failed payment's call is removed without an event once the payment can never land. */
  readonly mayBeMissing: boolean;
  readonly bodySha256: string;
  readonly bodyBytes: number;
}

/** A payment or a trigger's call, and the row that it must have; undefined if it must have no row. */
export interface OutboxEntry {
  readonly payment: string;
  readonly stream: string;
  readonly call: ExpectedCall | undefined;
}
