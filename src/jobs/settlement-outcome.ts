import type { LedgerEvent } from '../domain/events/event.ts';
import { ofPayment, type SignedPayment } from '../domain/payments/payment.ts';
import type { Address, Hex } from '../domain/values/primitives.ts';
import { foldQuote, type PaymentState, paymentOf } from '../domain/payments/quote-state.ts';
import { placeData, type PlacedTransfer } from '../domain/payments/transfer-place.ts';
import type { LaneCommand } from '../store/append-batch.ts';
import { readStream, transferClaim } from '../store/streams.ts';
import type { JobsContext } from './context.ts';

/** A payment whose `settlement_started` is recorded. From here on it is finished, whatever happens. */
export interface StartedPayment {
  readonly digest: Hex;
  readonly payment: SignedPayment;
  /** The call that waits for its outcome; undefined where a runner has it already, and only the money is still open. */
  readonly callId: number | undefined;
  /** The stream's version that an outcome is recorded at. */
  readonly version: number;
}

/** Where the transfer stands on the chain. */
export interface Proof extends PlacedTransfer {
  readonly blockHash: Hex;
}

export interface Settlement {
  readonly kind: 'settled';
  readonly transaction: Hex;
  /** Undefined where only a facilitator says so. */
  readonly proof: Proof | undefined;
}

export type Outcome =
  | Settlement
  /** Nothing was broadcast, says the facilitator, and the chain knows nothing of it: it may land yet. */
  | { readonly kind: 'failed'; readonly reason: string }
  /** It can never land any more: that is final on the chain. */
  | { readonly kind: 'void'; readonly reason: string }
  /** `settledPayer` where the facilitator says that somebody else paid. */
  | {
      readonly kind: 'unknown';
      readonly reason: string;
      readonly transaction?: Hex;
      readonly settledPayer?: Address;
    };

/** Another process recorded an outcome first, and that one holds. */
export interface Superseded {
  readonly kind: 'superseded';
}

/**
 * Records an outcome at wherever the stream stands by now: other events may have come in between, and only another
 * outcome of this very payment makes this one superfluous. Returns the outcome that is on record.
 */
export async function recordOutcome(
  context: Pick<JobsContext, 'lane' | 'pool' | 'onCallReleased'>,
  started: StartedPayment,
  outcome: Outcome,
): Promise<Outcome | Superseded> {
  const recorded = await context.lane.append(outcomeCommand(started, outcome), { urgent: true });
  switch (recorded.outcome) {
    case 'ok':
      if (outcome.kind === 'settled') context.onCallReleased();
      return outcome;
    case 'lost':
      // one transfer pays once: this one already paid for something else, so ours is not proven
      return recordClaimed(context, started);
    case 'same':
    case 'stale':
    case 'lease_lost': {
      const story = foldQuote((await readStream(context.pool, started.digest)).events);
      const known = paymentOf(story, started.payment);
      if (!known || isDecided(known, outcome) || story.version === started.version)
        return { kind: 'superseded' };
      return recordOutcome(context, { ...started, version: story.version }, outcome);
    }
  }
}

const claimed = { kind: 'unknown', reason: 'transfer_already_claimed' } as const;

/** Said once, however often it is looked at. */
async function recordClaimed(
  context: Parameters<typeof recordOutcome>[0],
  started: StartedPayment,
): Promise<Outcome | Superseded> {
  const story = foldQuote((await readStream(context.pool, started.digest)).events);
  const known = paymentOf(story, started.payment);
  return known?.reason === claimed.reason ? claimed : recordOutcome(context, started, claimed);
}

/** Whether what is on record leaves nothing for this outcome to say. */
function isDecided({ status }: PaymentState, { kind }: Outcome): boolean {
  switch (status) {
    case 'settling':
      return false;
    case 'settlement_unknown':
      return kind === 'unknown' || kind === 'failed';
    case 'settlement_failed':
      return kind !== 'settled';
    case 'settled':
      return true;
  }
}

function outcomeCommand({ digest, payment, callId, version }: StartedPayment, outcome: Outcome): LaneCommand {
  const named = ofPayment(payment);
  const base = { stream: digest, expect: version };
  switch (outcome.kind) {
    case 'settled': {
      const { transaction, proof } = outcome;
      const claims = proof
        ? [transferClaim(payment.network, transaction, proof.logIndex, payment.nonce)]
        : [];
      const settled = settledEvent(payment, outcome);
      if (callId === undefined) return { ...base, events: [settled], claims };
      const enqueued: LedgerEvent = {
        type: 'enqueued',
        data: { call_id: callId, payment_nonce: payment.nonce },
      };
      return { ...base, events: [settled, enqueued], claims, call: { op: 'release', callId } };
    }
    case 'failed':
    case 'void': {
      const failed: LedgerEvent = {
        type: 'settlement_failed',
        data: { ...named, reason: outcome.reason },
      };
      const op = outcome.kind === 'failed' ? 'watch' : 'remove';
      return { ...base, events: [failed], ...(callId === undefined ? {} : { call: { op, callId } }) };
    }
    case 'unknown': {
      const { reason, transaction, settledPayer } = outcome;
      const data = { ...named, reason, ...(transaction ? { transaction } : {}) };
      const unknown: LedgerEvent = { type: 'settlement_unknown', data };
      if (!settledPayer) return { ...base, events: [unknown] };
      const mismatch: LedgerEvent = {
        type: 'payer_mismatch',
        data: { ...named, settled_payer: settledPayer },
      };
      return { ...base, events: [mismatch, unknown] };
    }
  }
}

function settledEvent(payment: SignedPayment, outcome: Settlement): LedgerEvent {
  const { proof, transaction } = outcome;
  return {
    type: 'payment_settled',
    data: {
      ...ofPayment(payment),
      amount: String(payment.amount),
      transaction,
      ...(proof ? { evidence: 'chain', ...placeData(proof) } : { evidence: 'facilitator' }),
    },
  };
}
