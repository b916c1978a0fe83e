import type { z } from 'zod';

/**
 * `authorized`: its upstream is asked first, and nothing settles it. `settling` until any outcome is on record, and never again.
 */
export type PaymentStatus =
  | 'authorized'
  | 'settling'
  | 'settlement_unknown'
  | 'settlement_failed'
  | 'settled';
/** `none`: no call was enqueued yet, or it was withdrawn. */
export type CallStatus = 'none' | 'enqueued' | 'delivered' | 'completed' | 'dead_lettered';

/** What a stream can be about other than a quote or a request; the stream's name starts with the kind. */
export type EntityKind =
  | 'chat'
  | 'account'
  | 'key'
  | 'spend'
  | 'user'
  | 'session'
  | 'sweep'
  | 'transfer'
  | 'cost'
  | 'break'
  | 'period'
  | 'recovery'
  | 'attestation'
  | 'invoice';
/** The state of such an entity; `none` before its first event. */
export type EntityStep =
  | 'none'
  | 'admitted'
  | 'refused'
  | 'completed'
  | 'failed'
  | 'opened'
  | 'created'
  | 'enabled'
  | 'revoked'
  | 'disabled'
  | 'erased'
  | 'accepted'
  | 'earned'
  | 'released'
  | 'closed'
  | 'started'
  | 'ended'
  | 'recorded'
  | 'reversed'
  | 'explained'
  | 'recovered';

/**
 * What an event may follow, and the state in which it leaves its subject.
 * `note`: any event of any stream. `quote`: the first of its stream. `recovered_payment`: the only payment of its stream,
 * which has no quote; `redelivery`: such a payment, not refunded and without a call. `unpaid_quote`: in a quote's stream in which every
 * payment failed. `payment` and `call`: the payment or call that it names is in a state of `from`. `enqueue`: a settled
 * payment without a call. `triggered_call`: the first of its stream, which has no quote and whose events are of this call. `entity`: the entity of its stream is in a state of `from`.
 */
export type Transition =
  | { readonly of: 'note' }
  | { readonly of: 'quote' }
  | { readonly of: 'recovered_payment' }
  | { readonly of: 'redelivery' }
  | { readonly of: 'unpaid_quote' }
  | { readonly of: 'payment'; readonly from: readonly PaymentStatus[]; readonly to?: PaymentStatus }
  | { readonly of: 'enqueue' }
  | { readonly of: 'triggered_call' }
  | { readonly of: 'call'; readonly from: readonly CallStatus[]; readonly to?: CallStatus }
  | {
      readonly of: 'entity';
      readonly kind: EntityKind;
      readonly from: readonly EntityStep[];
      readonly to?: EntityStep;
    };

/** The accounts between which one customer's credit moves; `granted`, `bought`, `expired` and `used` are the operator's side. */
export type CreditSide = 'available' | 'held' | 'granted' | 'bought' | 'expired' | 'used';

/** The public counters, in the order of their report. Each is the number of events whose descriptor names it. */
export const counterNames = [
  'accepted',
  'denied',
  'replay_denied',
  'payment_replay_denied',
  'nonce_replay_denied',
  'enqueue_failed',
  'dry_run',
  'quoted',
  'settled',
  'settlement_unknown',
  'settlement_failed',
  'settlement_disproved',
  'settlement_reorged',
  'dry_run_allowed',
  'dry_run_denied',
  'dry_run_error',
  'delivered',
  'completed',
  'dead_lettered',
  'triggered',
] as const;
export type CounterName = (typeof counterNames)[number];

/**
 * Something a worker does later because of an event: `confirm` a settlement until it is final, `resolve` one that failed
 * while a runner has its call, `alert` the operator, `reverse_top_up`: reverse credit whose payment did not stand, `pay_out` a spend.
 */
export type FollowUpTopic = 'confirm' | 'resolve' | 'alert' | 'reverse_top_up' | 'pay_out';

/**
 * All that the code needs to know of one event type. A descriptor begins with {@link recordOnly} and states what differs.
 * Where an aspect is not `none`, a handler keyed by {@link TypesWith} of it does not compile until it handles the type.
 */
export interface EventDescriptor {
  /** Shape of the event's data. */
  readonly schema: z.ZodObject;
  /** Checked by the verifier. */
  readonly transition: Transition;
  /** Whether it changes the state of its quote: handled in payments/rules/quote-state.ts. */
  readonly quoteState: 'changes' | 'none';
  /** Whether it takes or gives back a uniqueness claim: checked in audit/rules. */
  readonly uniqueness: 'claims' | 'releases' | 'none';
  /** The two sides of the credit that it moves: the amount is its `amount_micros`. */
  readonly credit: readonly [from: CreditSide, to: CreditSide] | 'none';
  /** `posts`: it may move money in the books. `context`: later postings depend on it. Handled in audit/rules/bookkeeping. */
  readonly bookkeeping: 'posts' | 'context' | 'none';
  /** When it changes a quote that the books had closed: always, after a failed settlement, or after a completed call. */
  readonly reopens: 'always' | 'after_failure' | 'after_completion' | 'none';
  /** Whether reconciling the ledger with the chain needs it: handled in finance/rules/reconcile. */
  readonly reconciliation: 'needed' | 'none';
  /** The read models that it changes: handled in projections/. */
  readonly readModels: readonly ('payments' | 'credit' | 'usage')[] | 'none';
  readonly counters: readonly CounterName[] | 'none';
  /** Collected by SQL (migrations/functions), compared in test/store. The event's data may rule out a topic. */
  readonly followUps: readonly FollowUpTopic[] | 'none';
}

export type EventFamily = Readonly<Record<string, EventDescriptor>>;

/** Of an event that is recorded and changes nothing else. */
export const recordOnly = {
  quoteState: 'none',
  uniqueness: 'none',
  credit: 'none',
  bookkeeping: 'none',
  reopens: 'none',
  reconciliation: 'none',
  readModels: 'none',
  counters: 'none',
  followUps: 'none',
} as const satisfies Omit<EventDescriptor, 'schema' | 'transition'>;

/** Of an event that changes the state of its quote. */
export const changesQuote = {
  ...recordOnly,
  quoteState: 'changes',
  reconciliation: 'needed',
  readModels: ['payments'],
} as const;

export const note = { of: 'note' } as const satisfies Transition;
