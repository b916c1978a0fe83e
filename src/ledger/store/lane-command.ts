import type { LedgerEvent } from '../rules/event.ts';
import type { Firing } from '../../base/values/triggers/trigger.ts';

/** A value that may be claimed once, as a row of `tollbook.claim`; `binding` distinguishes a holder that repeats its claim from another claimant. */
export interface Claim {
  readonly kind: 'payment' | 'payment_id' | 'transfer' | 'spend_auth' | 'spend_request' | 'trigger';
  readonly owner: string;
  readonly scope: string;
  readonly key: string;
  /** Distinguishes claims that are looked up together: the asset of a payment, the log entry of a transfer. */
  readonly part?: string;
  readonly binding: string;
}

/** A caller's nonce on a job: a row of `tollbook.caller_nonce`. */
export interface NonceClaim {
  readonly kind: 'caller_nonce';
  readonly caller: string;
  readonly serviceId: number;
  readonly jobIndex: number;
  readonly nonceSha256: string;
}

export type AnyClaim = Claim | NonceClaim;

/** A request's bytes, untouched. */
export interface CallBody {
  readonly contentType: string | undefined;
  readonly bytes: Buffer;
}

/** How a call is ordered among those of its key. */
export interface CallOrder {
  /** A hash, in hex. */
  readonly key: string;
  /** How many calls of the key may be in delivery simultaneously. */
  readonly limit: number;
  /** Whether the others of its key wait for it while it is a dead letter. */
  readonly keepsPlace: boolean;
  /** After this many failed attempts the others no longer wait for it; undefined: as long as it has attempts. */
  readonly maxFailures: number | undefined;
}

/** What happens to the call that belongs to a stream. Changes of a leased call carry its lease: the fencing token. */
export type CallChange =
  | {
      readonly op: 'add';
      readonly serviceId: number;
      readonly jobIndex: number;
      readonly bodyId: string;
      /** A small body travels with the command; a large one was stored before, under the same id. */
      readonly body?: CallBody | undefined;
      readonly network: string;
      readonly asset: string;
      readonly symbol: string;
      readonly caller: string | undefined;
      /** The payment that pays for it, as `paymentKey()` names it. The command's other claims are freed with it. */
      readonly payment: string;
      /** What its runner gets, as `paidCallKey()` makes it. */
      readonly idempotencyKey: string;
      /** When the resolver first checks its settlement, if no outcome was recorded by then. */
      readonly delayMs: number;
      /** What orders it; undefined for a call that is ordered with no other. */
      readonly order?: CallOrder | undefined;
      /** The span of the request that bought it; stored with the call, never in an event. */
      readonly traceparent?: string | undefined;
    }
  /** A call that a trigger made: ready immediately. Its id was taken before, since its event names it. */
  | {
      readonly op: 'enqueue';
      readonly newCallId: number;
      readonly serviceId: number;
      readonly jobIndex: number;
      readonly bodyId: string;
      readonly body?: CallBody | undefined;
      readonly idempotencyKey: string;
      readonly trigger: Firing;
      readonly traceparent?: string | undefined;
    }
  /**
   * `watch`: its payment failed, but may still land; `remove`: it never will. Its settlement was disproved: `suspend` if no
   * runner has the call at this moment, `mark_unpaid` if one has. `discard`: it is given up; refused while a runner has it.
   */
  | {
      readonly op:
        | 'release'
        | 'answer'
        | 'watch'
        | 'remove'
        | 'suspend'
        | 'mark_unpaid'
        | 'requeue'
        | 'discard';
      readonly callId: number;
    }
  | { readonly op: 'complete' | 'check'; readonly callId: number; readonly leaseId: string }
  /** Released, and leased in the same append for `delayMs`, by the request that has settled its payment. Not for calls that are ordered by a key. */
  | { readonly op: 'lease'; readonly callId: number; readonly leaseId: string; readonly delayMs: number }
  | (Failure & { readonly op: 'dead_letter'; readonly callId: number; readonly leaseId: string })
  | (Failure & {
      readonly op: 'retry' | 'return_lease';
      readonly callId: number;
      readonly leaseId: string;
      readonly delayMs: number;
    });

/** For the operator: stored with the call, where it stays until another failure replaces it. */
interface Failure {
  /** The event's reason. */
  readonly reason?: string | undefined;
  /** The runner's name. */
  readonly runner?: string | undefined;
  /** What the runner said: never in the ledger. */
  readonly error?: string | undefined;
}

/** One atomic step: all of it is recorded, or nothing but `lost`. */
export interface LaneCommand {
  /** A quote's digest, a request's id, or that of an entity. */
  readonly stream: string;
  /** The version that the stream must have; any where left out. */
  readonly expect?: number | undefined;
  /** When the quote that it takes was issued, in Unix seconds: the append is stale where quotes of that time are revoked. */
  readonly issuedAt?: number | undefined;
  /**
   * The append is stale from this time on, in Unix seconds by the database's clock. A gateway that reads that clock later, and the
   * ledger after its own append, knows that the command was recorded before or never will be.
   */
  readonly endsAt?: number | undefined;
  /** A request that this append refuses, as its `copyKey` names it. */
  readonly refuses?: string | undefined;
  /** Recorded only if no append has refused that request within the last ten minutes. */
  readonly unlessRefused?: string | undefined;
  readonly events: readonly LedgerEvent[];
  readonly claims?: readonly AnyClaim[];
  /** Claims of this stream to free. */
  readonly freed?: readonly Claim[];
  /** Events to append, if another stream holds a claim of that kind, to the stream of the refused command, never to a payment's. */
  readonly lost?: {
    readonly stream: string;
    readonly events: Readonly<Partial<Record<AnyClaim['kind'], readonly LedgerEvent[]>>>;
  };
  readonly call?: CallChange;
}

/** An event to send: its data are canonical text, stored byte for byte. */
export interface EncodedEvent {
  readonly type: string;
  readonly data: string;
}
