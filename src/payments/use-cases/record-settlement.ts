import type { Hex } from '../../base/values/primitives.ts';
import { foldQuote, paymentOf } from '../rules/quote-state.ts';
import {
  type CallStep,
  type ClaimedTransfer,
  decide,
  type HeldCall,
  type Outcome,
  type SettlementCall,
  type SettlementOutcome,
  type SettlementState,
  settlementState,
  transferAlreadyClaimed,
} from '../rules/settlement.ts';
import type { CallChange, Claim, LaneCommand } from '../../ledger/store/append-batch.ts';
import type { AppendOptions, Lane } from '../../ledger/store/lane.ts';
import { readStream } from '../../ledger/store/streams.ts';
import { transferClaim } from '../store/claims.ts';
import type { LedgerWriter } from '../../ledger/store/ledger.ts';

export interface RecordPorts extends LedgerWriter {
  /** Called when a call was released, so that the relays need not wait for their next poll. */
  readonly onCallReleased: () => void;
}

/** A payment at a version of its stream: its `settlement_started` is on record, so it is finished, whatever happens. */
export interface StartedPayment {
  readonly digest: Hex;
  /** The stream's version that an outcome is recorded at. */
  readonly version: number;
  readonly state: SettlementState;
}

/** Another process recorded an outcome first, and that one holds. */
export interface Superseded {
  readonly kind: 'superseded';
}

export type Recorded =
  | {
      readonly kind: 'recorded';
      /** The time of its events, RFC 3339. */
      readonly at: string;
      /** The request has the call under its own lease. */
      readonly isLeased: boolean;
    }
  | Superseded
  /** The transfer has paid for something else: it does not prove this payment. */
  | { readonly kind: 'transfer_claimed' }
  /** A runner has leased the call meanwhile. */
  | { readonly kind: 'lease_lost' }
  /** The stream moved: it has to be read again. */
  | { readonly kind: 'stale' };

/** An outcome that is on record; a settlement with the time of its event, RFC 3339, and with its lease where that is on record. */
export type RecordedOutcome =
  | Exclude<Outcome, { kind: 'settled' }>
  | (Extract<Outcome, { kind: 'settled' }> & { readonly at: string });

/** Decides on one outcome and appends the decision, once. The only place that writes settlements into the ledger. */
export async function recordDecision(
  { lane }: { readonly lane: Lane },
  { digest, version, state }: StartedPayment,
  outcome: SettlementOutcome,
  options: Pick<AppendOptions, 'mayWaitMs'> = {},
): Promise<Recorded> {
  const decision = decide(state, outcome);
  if (decision.kind === 'superseded') return decision;
  const { events, claims, freed, call } = decision;
  const command: LaneCommand = {
    stream: digest,
    expect: version,
    events,
    claims: claims.map(claimOf),
    ...(freed.length > 0 ? { freed: freed.map(claimOf) } : {}),
    ...(call.kind === 'unchanged' ? {} : { call: changeOf(call) }),
  };
  const appended = await lane.append(command, { ...options, urgent: true });
  switch (appended.outcome) {
    case 'ok':
      return { kind: 'recorded', at: appended.at, isLeased: call.kind === 'lease' };
    case 'lost':
      return { kind: 'transfer_claimed' };
    case 'lease_lost':
      return { kind: 'lease_lost' };
    case 'same':
    case 'stale':
    case 'request_refused':
      return { kind: 'stale' };
  }
}

function changeOf(step: CallStep): CallChange {
  const { callId } = step;
  return step.kind === 'lease'
    ? { op: 'lease', callId, leaseId: step.leaseId, delayMs: step.leaseMs }
    : { op: step.kind, callId };
}

function claimOf({ network, transaction, logIndex, paymentNonce }: ClaimedTransfer): Claim {
  return transferClaim(network, transaction, logIndex, paymentNonce);
}

/**
 * Records an outcome at whatever version the stream has by now: other events may have come in between, and only another
 * outcome of this very payment supersedes this one. Returns the outcome that is on record.
 */
export async function recordOutcome(
  context: RecordPorts,
  started: StartedPayment,
  outcome: Outcome,
  options: Pick<AppendOptions, 'mayWaitMs'> = {},
): Promise<RecordedOutcome | Superseded> {
  const recorded = await recordDecision(context, started, outcome, options);
  switch (recorded.kind) {
    case 'recorded':
      if (outcome.kind !== 'settled') return outcome;
      if (!recorded.isLeased) context.onCallReleased();
      return { ...outcome, lease: recorded.isLeased ? outcome.lease : undefined, at: recorded.at };
    case 'superseded':
      return recorded;
    case 'transfer_claimed': {
      const current = await readAgain(context, started);
      const unknown = { kind: 'unknown', reason: transferAlreadyClaimed } as const;
      if (current.state.reason === unknown.reason) return unknown;
      return recordOutcome(context, current, unknown);
    }
    case 'lease_lost':
    case 'stale': {
      const current = await readAgain(context, started);
      const isLeaseRefused = outcome.kind === 'settled' && outcome.lease !== undefined;
      if (current.version === started.version && !isLeaseRefused) return { kind: 'superseded' };
      return recordOutcome(context, current, isLeaseRefused ? { ...outcome, lease: undefined } : outcome);
    }
  }
}

/** The same payment at its stream's present version. A call that was held is held still, or has left with an outcome. */
async function readAgain({ pool }: RecordPorts, { digest, state }: StartedPayment): Promise<StartedPayment> {
  const { payment, call } = state;
  const quote = foldQuote((await readStream(pool, digest)).events);
  const known = paymentOf(quote, payment);
  if (!known) throw new Error('a started payment is missing from its stream');
  return { digest, version: quote.version, state: settlementState(known, heldCall(call)) };
}

function heldCall(call: SettlementCall): HeldCall | undefined {
  if (call.kind === 'waiting') return { callId: call.callId, attempt: 0 };
  return call.kind === 'kept' ? call : undefined;
}
