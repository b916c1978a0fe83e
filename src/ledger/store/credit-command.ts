import type { LedgerEvent } from '../rules/event.ts';

/** A limit on the requests of one subject, exact over all processes. */
export interface RateLimit {
  readonly subject: string;
  readonly perMinute: number;
  /** Of admitted requests, by UTC day. */
  readonly perDay: number | undefined;
}

/** Admission of one completion: key, limits and credit together, or none of them. */
export interface Admission extends RateLimit {
  readonly chatId: string;
  /** The process that will settle it. */
  readonly processId: string;
  /** Further limits: it counts against all of them, or against none if one is full. */
  readonly others?: readonly RateLimit[];
  /** The request is refused in any case: it is only counted. */
  readonly isRefused?: boolean;
  /** How many refusals a second are recorded of strangers, and how many of customers; left out: all. */
  readonly refusalEventsPerSec?: number;
  readonly keyId: number | undefined;
  readonly accountId: number | undefined;
  /** The most micros that it may cost; 0 for a free model. */
  readonly holdMicros: bigint;
  /** This much must be available, where it is more than the hold: the hold may be a part of it only. */
  readonly neededMicros?: bigint | undefined;
  /** Where this many micros are available the caller will retry with a smaller hold: the refusal is not recorded. */
  readonly leastMicros?: bigint | undefined;
}

/** A move of credit on an account; the command's events record the same. */
export type CreditMove =
  | { readonly op: 'open'; readonly accountId: number; readonly name: string }
  /** For ever: it gets no credit any more. Only without credit and holds. */
  | { readonly op: 'close'; readonly accountId: number }
  | {
      /** `expire` subtracts, the others add. */
      readonly op: 'grant' | 'top_up' | 'expire';
      readonly accountId: number;
      readonly amountMicros: bigint;
      /** A request id moves credit once. */
      readonly requestId?: string | undefined;
    }
  /** Ends a chat's hold: its cost is captured, the rest released. */
  | {
      readonly op: 'settle';
      readonly chatId: string;
      readonly capturedMicros: bigint;
      readonly releasedMicros: bigint;
      /** Only if its upstream has not begun to answer. */
      readonly isUnstarted?: boolean;
      /** Ended for a silent process: only while it is still silent. */
      readonly recovery?: { readonly processId: string; readonly silentSecs: number };
    };

/**
 * `gone`: another process ended the hold, or the upstream has started to answer, or the hold's process sends heartbeats
 * again; an account of that name exists already, has too little to subtract, or would have too much. A settlement with
 * events for `gone` is a correction too: if the whole hold was captured for this process, the excess is returned and
 * the events are recorded. `counted`: a request that is refused in any case was counted. `repeated`: this request id has made the same move before; `request_id_taken`: another move.
 */
export type CreditRefusal =
  | 'invalid_api_key'
  | 'rate_limit_exceeded'
  | 'daily_quota_exceeded'
  | 'insufficient_funds'
  | 'key_cap_reached'
  | 'key_budget_reached'
  | 'counted'
  | 'gone'
  | 'repeated'
  | 'request_id_taken';

/** A step of a chat: the lane, which counts its limits and its credit, decides it. */
export interface CreditCommand {
  readonly stream: string;
  readonly events: readonly LedgerEvent[];
  readonly admit?: Admission;
  readonly credit?: CreditMove;
  /** What is recorded instead, by refusal. */
  readonly refused?: Readonly<Partial<Record<CreditRefusal, readonly LedgerEvent[]>>>;
}

/**
 * Numbers of a decision, if they apply: milliseconds, admissions, micros. Of the minute and the day of an admission's limits that bind:
 * those that refused, or that leave the least.
 */
export interface CreditDetail {
  readonly per_minute?: number | null;
  /** Absent if no limit is by day. */
  readonly per_day?: number | null;
  readonly remaining?: number | null;
  /** Until the minute admits one more. */
  readonly reset_ms?: number | null;
  readonly remaining_today?: number | null;
  readonly reset_today_ms?: number | null;
  /** Until the limit that refused admits one more. */
  readonly retry_ms?: number | null;
  /** The subject of that limit. */
  readonly full_subject?: string | null;
  /** When the budget that refused starts anew, RFC 3339. */
  readonly budget_until?: string | null;
  /** The refusal is not recorded, since too many are: the gateway sums it. */
  readonly is_summed?: boolean;
  /** What could have been held; after a move, the balance. */
  readonly available?: number | null;
}

export type CreditOutcome =
  | { readonly outcome: 'ok'; readonly version: number; readonly at: string; readonly detail: CreditDetail }
  | { readonly outcome: 'refused'; readonly code: CreditRefusal; readonly detail: CreditDetail };

/**
 * What an admission that was written leaves of its limits, named as in `CreditDetail`: remaining, reset_ms, remaining_today,
 * reset_today_ms, per_minute, per_day.
 */
export type LimitsLeft = readonly [number, number, number | null, number, number, number | null];
