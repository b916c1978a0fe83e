import type { LedgerEvent } from '../../ledger/rules/event.ts';
import type { Address, Caip2, Hex } from '../../base/values/primitives.ts';
import { ofPayment, paymentFromData, type SignedPayment } from './payment.ts';
import type { AnsweredFacts } from './payment-progress.ts';
import type { PaymentState } from './quote-state.ts';
import { placeData, type PlacedTransfer } from './chain-transfer.ts';

/** All that a decision about a settlement depends on. */
export interface SettlementState extends Pick<
  PaymentState,
  'status' | 'reason' | 'settled' | 'isOverdue' | 'wasEnqueued' | 'answered' | 'facilitator' | 'approval'
> {
  readonly payment: SignedPayment;
  /** A part of it was refunded, or all: no call is released for it. */
  readonly wasRefunded?: boolean | undefined;
  readonly call: SettlementCall;
}

/** The call that a payment pays for. */
export type SettlementCall =
  /** It cannot be leased before the outcome is known. */
  | { readonly kind: 'waiting'; readonly callId: number }
  /** No runner has leased it at this moment. */
  | { readonly kind: 'enqueued'; readonly callId: number }
  /** A runner has leased it. */
  | { readonly kind: 'leased'; readonly callId: number }
  /** Its payment was reversed while a runner had it: it is not delivered again before the payment is settled. */
  | { readonly kind: 'kept'; readonly callId: number; readonly attempt: number }
  /** It has ended: only the money can still be open. */
  | { readonly kind: 'ended' };

/** A call in the queue that cannot be leased, and how often it was delivered. */
export interface HeldCall {
  readonly callId: number;
  readonly attempt: number;
}

/** A transfer's place on the chain. */
export interface Proof extends PlacedTransfer {
  readonly blockHash: Hex;
  /** The atoms that it moved, of a scheme that may move less than was signed; undefined: all that was signed. */
  readonly value?: bigint;
}

export interface Settlement {
  readonly kind: 'settled';
  readonly transaction: Hex;
  /** Absent if only a facilitator says so. */
  readonly proof: Proof | undefined;
  /** The request that has settled the payment serves its call itself. */
  readonly lease?: FirstLease | undefined;
}

/** The first lease of a call, which begins as its payment is settled. */
export interface FirstLease {
  readonly leaseId: string;
  readonly leaseMs: number;
}

/** What settling a payment, or looking for its transfer, came to. */
export type Outcome =
  | Settlement
  /** The facilitator broadcast nothing and the chain has no transfer: it may still land. */
  | { readonly kind: 'failed'; readonly reason: string }
  /** It can never land any more: that is final on the chain. */
  | { readonly kind: 'void'; readonly reason: string }
  /** `settledPayer` if the facilitator says that another payer paid. */
  | {
      readonly kind: 'unknown';
      readonly reason: string;
      readonly transaction?: Hex;
      readonly settledPayer?: Address;
    };

/** An operator's own knowledge about a settlement. `evidence`: visible ASCII, for the auditor. */
interface ByOperator {
  readonly evidence: string;
  readonly operator: string;
}

/** All that can be found out about a settlement by the request, the resolver, the confirmer or an operator. */
export type SettlementOutcome =
  | Outcome
  | { readonly kind: 'overdue'; readonly ageSecs: number; readonly reason: string }
  /** The chain shows the transfer that a facilitator reported. */
  | { readonly kind: 'confirmed'; readonly transaction: Hex; readonly proof: PlacedTransfer }
  /** The chain shows that the reported transfer does not exist. */
  | { readonly kind: 'disproved'; readonly reason: string }
  /** The block of the transfer was replaced. */
  | { readonly kind: 'reorged' }
  /** The upstream's answer is stored. */
  | { readonly kind: 'answered'; readonly facts: AnsweredFacts }
  /** The upstream gave no answer that is charged. */
  | { readonly kind: 'not_charged'; readonly reason: string }
  /** The payer of a recovered payment has asked for delivery. */
  | { readonly kind: 'redelivery' }
  | ({
      readonly kind: 'paid_by_operator';
      readonly transaction: Hex;
      /** As the chain shows it; without a chain, only which log of the transaction the operator says it is. */
      readonly transfer: Proof | { readonly logIndex: number };
    } & ByOperator)
  | ({ readonly kind: 'unpaid_by_operator' } & ByOperator);

/** A transfer's log entry, which proves one payment only. */
export interface ClaimedTransfer {
  readonly network: Caip2;
  readonly transaction: string;
  readonly logIndex: number;
  readonly paymentNonce: Hex;
}

export type SettlementDecision =
  | {
      readonly kind: 'record';
      readonly events: readonly LedgerEvent[];
      readonly claims: readonly ClaimedTransfer[];
      /** Claims to give up. */
      readonly freed: readonly ClaimedTransfer[];
      readonly call: { readonly kind: 'unchanged' } | CallStep;
    }
  /** The state leaves nothing to record. */
  | { readonly kind: 'superseded' };

/**
 * `watch`: the payment may still land; `remove`: it never will. The payment was taken back: `suspend` if no runner has leased the
 * call, else `mark_unpaid`. `answer`: the stored answer has completed it. `lease`: released, and leased at once.
 */
export type CallStep =
  | {
      readonly kind: 'release' | 'answer' | 'watch' | 'remove' | 'suspend' | 'mark_unpaid';
      readonly callId: number;
    }
  | ({ readonly kind: 'lease'; readonly callId: number } & FirstLease);

/** The reason of a settlement whose transfer has already paid for something else. */
export const transferAlreadyClaimed = 'transfer_already_claimed';

/** A payment as its stream shows it; `held` if its call is in the queue and cannot be leased. */
export function settlementState(known: PaymentState, held: HeldCall | undefined): SettlementState {
  const { status, reason, settled, isOverdue, wasEnqueued, answered, facilitator, approval } = known;
  return {
    payment: paymentFromData(known.payment),
    status,
    reason,
    settled,
    isOverdue,
    wasEnqueued,
    answered,
    facilitator,
    approval,
    wasRefunded: known.refunds.length > 0,
    call: callOf(known, held),
  };
}

function callOf({ call }: PaymentState, held: HeldCall | undefined): SettlementCall {
  if (!call) return held ? { kind: 'waiting', callId: held.callId } : { kind: 'ended' };
  if (call.status === 'completed' || call.status === 'dead_lettered') return { kind: 'ended' };
  return held ? { kind: 'kept', ...held } : { kind: 'enqueued', callId: call.callId };
}

/** Decides what an outcome changes, for every process that finds one out. Pure. */
export function decide(state: SettlementState, outcome: SettlementOutcome): SettlementDecision {
  const { status } = state;
  const isOpen = status === 'settling' || status === 'settlement_unknown';
  switch (outcome.kind) {
    case 'settled':
      return status === 'settled' ? superseded : settle(state, outcome);
    case 'failed':
      // only as the first outcome of all: after any other the payment may have been settled again meanwhile
      return status === 'settling' ? fail(state, outcome.reason, 'watch') : superseded;
    case 'answered':
      return status === 'authorized' ? answer(state, outcome.facts) : superseded;
    case 'not_charged':
      return status === 'authorized' ? fail(state, outcome.reason, 'watch') : superseded;
    case 'void':
      return isOpen ? fail(state, outcome.reason, 'remove') : remove(state);
    case 'unknown':
      return status === 'settling' || isNewClaimLoss(state, outcome)
        ? recordUnknown(state, outcome)
        : superseded;
    case 'overdue':
      return isOpen && !state.isOverdue ? recordOverdue(state, outcome) : superseded;
    case 'confirmed':
      return isReported(state) ? confirm(state, outcome) : superseded;
    case 'disproved':
      return isReported(state) ? disprove(state, outcome.reason) : superseded;
    case 'reorged':
      return reopen(state);
    case 'redelivery':
      return status === 'settled' && state.call.kind === 'waiting' && !state.wasRefunded
        ? record(enqueued(state), { call: waiting(state, 'release') })
        : superseded;
    case 'paid_by_operator':
      return isOpen ? settleByOperator(state, outcome) : superseded;
    case 'unpaid_by_operator':
      return isOpen ? failByOperator(state, outcome) : superseded;
  }
}

const superseded: SettlementDecision = { kind: 'superseded' };

type Recorded = Extract<SettlementDecision, { kind: 'record' }>;

function record(
  events: readonly LedgerEvent[],
  rest: Partial<Omit<Recorded, 'kind' | 'events'>> = {},
): Recorded {
  return { kind: 'record', events, claims: [], freed: [], call: { kind: 'unchanged' }, ...rest };
}

/** What happens to a call that waits for the outcome. */
function waiting({ call }: SettlementState, kind: Exclude<CallStep['kind'], 'lease'>): Recorded['call'] {
  return call.kind === 'waiting' ? { kind, callId: call.callId } : { kind: 'unchanged' };
}

/** A waiting call is enqueued together with its settlement; where a part of that was refunded, the rest of it is as well. */
function enqueued({
  payment,
  call,
  wasEnqueued = false,
  wasRefunded = false,
}: SettlementState): LedgerEvent[] {
  if (call.kind !== 'waiting' || wasRefunded) return [];
  const type = wasEnqueued ? 'enqueued_again' : 'enqueued';
  return [{ type, data: { call_id: call.callId, payment_nonce: payment.nonce } }];
}

interface Released {
  readonly events: readonly LedgerEvent[];
  readonly call: Recorded['call'];
}

/**
 * A call that cannot be leased is released; one that was kept continues as if its payment had never been taken back. Where the answer of an
 * upstream is stored, it completes the call in the same append. A call that the request serves itself is delivered in it for the first time.
 */
function released(state: SettlementState, lease?: FirstLease): Released {
  const { call, answered, wasRefunded = false } = state;
  const events = enqueued(state);
  if (call.kind !== 'waiting' && call.kind !== 'kept') return { events, call: { kind: 'unchanged' } };
  const { callId } = call;
  if (answered && call.kind === 'waiting' && events.length > 0) {
    const { used: _, ...result } = answered;
    const completed: LedgerEvent = { type: 'completed', data: { call_id: callId, ...result } };
    return { events: [...events, completed], call: { kind: 'answer', callId } };
  }
  if (lease && events.some(({ type }) => type === 'enqueued')) {
    const delivered: LedgerEvent = { type: 'delivered', data: { call_id: callId, attempt: 1 } };
    return { events: [...events, delivered], call: { kind: 'lease', callId, ...lease } };
  }
  return { events, call: { kind: call.kind === 'waiting' && wasRefunded ? 'remove' : 'release', callId } };
}

function answer({ payment }: SettlementState, facts: AnsweredFacts): SettlementDecision {
  return record([{ type: 'upstream_answered', data: { ...ofPayment(payment), ...facts } }]);
}

function settle(state: SettlementState, { transaction, proof, lease }: Settlement): SettlementDecision {
  const { payment } = state;
  const evidence = proof
    ? { evidence: 'chain' as const, ...placeData(proof) }
    : { evidence: 'facilitator' as const };
  const amount = movedAtoms(state, proof);
  const data = { ...ofPayment(payment), amount: String(amount), transaction, ...evidence };
  const { events, call } = releasedFor(state, amount, lease);
  return record([{ type: 'payment_settled', data }, ...events], {
    claims: proof ? [transferOf(payment, transaction, proof.logIndex)] : [],
    call,
  });
}

/** What is moved for a payment: all that was signed, or of `upto` as much as its transfer shows, or as its answer has used. */
export function movedAtoms(
  { payment, answered }: Pick<SettlementState, 'payment' | 'answered'>,
  proof?: Pick<Proof, 'value'>,
): bigint {
  return proof?.value ?? (answered?.used === undefined ? payment.amount : BigInt(answered.used));
}

/** Whether a facilitator has moved more than was used. Before an answer has used anything, that is any amount. */
export function isTooMuch(
  { payment, answered }: Pick<SettlementState, 'payment' | 'answered'>,
  atoms: bigint,
): boolean {
  return payment.transferMethod === 'upto' && atoms > BigInt(answered?.used ?? 0);
}

/** Nothing is delivered for money that its payer does not owe: its refund is due, the whole of it. */
function releasedFor(state: SettlementState, atoms: bigint, lease?: FirstLease): Released {
  return isTooMuch(state, atoms) ? { events: [], call: waiting(state, 'remove') } : released(state, lease);
}

function fail(state: SettlementState, reason: string, call: 'watch' | 'remove'): SettlementDecision {
  const failed: LedgerEvent = { type: 'settlement_failed', data: { ...ofPayment(state.payment), reason } };
  return record([failed], { call: waiting(state, call) });
}

/**
 * The failure of a payment is on record already; now that it is final, its call is dropped. One that was delivered before ends as
 * a dead letter that cannot be requeued.
 */
function remove(state: SettlementState): SettlementDecision {
  const { status, call } = state;
  if (status !== 'settlement_failed') return superseded;
  if (call.kind === 'waiting') return record([], { call: waiting(state, 'remove') });
  if (call.kind !== 'kept') return superseded;
  const data = { call_id: call.callId, attempt: call.attempt, reason: 'settlement_failed' };
  return record([{ type: 'dead_lettered', data }], { call: { kind: 'remove', callId: call.callId } });
}

/** A transfer that has paid for something else proves nothing for this payment: recorded once, however often it is found. */
function isNewClaimLoss({ status, reason }: SettlementState, outcome: { readonly reason: string }): boolean {
  return (
    status !== 'settled' && outcome.reason === transferAlreadyClaimed && reason !== transferAlreadyClaimed
  );
}

function recordUnknown(
  state: SettlementState,
  { reason, transaction, settledPayer }: Extract<Outcome, { kind: 'unknown' }>,
): SettlementDecision {
  const named = ofPayment(state.payment);
  const data = { ...named, reason, ...(transaction ? { transaction } : {}) };
  const unknown: LedgerEvent = { type: 'settlement_unknown', data };
  if (!settledPayer) return record([unknown]);
  return record([{ type: 'payer_mismatch', data: { ...named, settled_payer: settledPayer } }, unknown]);
}

function recordOverdue(
  { payment }: SettlementState,
  { ageSecs, reason }: Extract<SettlementOutcome, { kind: 'overdue' }>,
): SettlementDecision {
  return record([{ type: 'settlement_overdue', data: { ...ofPayment(payment), age_secs: ageSecs, reason } }]);
}

/** Settled, with no more evidence than a facilitator's report. */
function isReported({ status, settled }: SettlementState): boolean {
  return status === 'settled' && settled?.evidence === 'facilitator';
}

function confirm(
  { payment }: SettlementState,
  { transaction, proof }: Extract<SettlementOutcome, { kind: 'confirmed' }>,
): SettlementDecision {
  const data = { ...ofPayment(payment), transaction, ...placeData(proof) };
  return record([{ type: 'settlement_confirmed', data }], {
    claims: [transferOf(payment, transaction, proof.logIndex)],
  });
}

function disprove(state: SettlementState, reason: string): SettlementDecision {
  const { payment, settled } = state;
  if (!settled) return superseded;
  const { fate, call } = takeBack(state);
  const data = { ...ofPayment(payment), transaction: settled.transaction, reason, call: fate };
  return record([{ type: 'settlement_disproved', data }], { call });
}

function reopen(state: SettlementState): SettlementDecision {
  const { status, payment, settled } = state;
  if (status !== 'settled' || !settled?.proof) return superseded;
  const { transaction, proof } = settled;
  const { fate, call } = takeBack(state);
  const block = { block_number: String(proof.blockNumber), block_hash: proof.blockHash };
  const data = { ...ofPayment(payment), transaction, ...block, call: fate };
  return record([{ type: 'settlement_reorged', data }], {
    freed: [transferOf(payment, transaction, proof.logIndex)],
    call,
  });
}

/** A call that no runner has leased waits for the outcome again; one that a runner has is not delivered again meanwhile. */
function takeBack({ call }: SettlementState): {
  readonly fate: 'withdrawn' | 'kept';
  readonly call: Recorded['call'];
} {
  switch (call.kind) {
    case 'enqueued':
      return { fate: 'withdrawn', call: { kind: 'suspend', callId: call.callId } };
    case 'leased':
      return { fate: 'kept', call: { kind: 'mark_unpaid', callId: call.callId } };
    case 'waiting':
    case 'kept':
    case 'ended':
      return { fate: 'kept', call: { kind: 'unchanged' } };
  }
}

function settleByOperator(
  state: SettlementState,
  outcome: Extract<SettlementOutcome, { kind: 'paid_by_operator' }>,
): SettlementDecision {
  const { payment } = state;
  const { transaction, transfer } = outcome;
  const isShown = 'blockHash' in transfer;
  const place = isShown ? placeData(transfer) : { log_index: transfer.logIndex };
  const amount = movedAtoms(state, isShown ? transfer : undefined);
  const money = { amount: String(amount), transaction, evidence: 'operator' as const };
  const settled: LedgerEvent = {
    type: 'payment_settled',
    data: { ...ofPayment(payment), ...money, ...place },
  };
  const { events, call } = releasedFor(state, amount);
  return record([resolvedByOperator(state, { ...outcome, paid: true }), settled, ...events], {
    claims: [transferOf(payment, transaction, transfer.logIndex)],
    call,
  });
}

function failByOperator(
  state: SettlementState,
  outcome: Extract<SettlementOutcome, { kind: 'unpaid_by_operator' }>,
): SettlementDecision {
  const data = { ...ofPayment(state.payment), reason: 'operator_decision' };
  return record(
    [resolvedByOperator(state, { ...outcome, paid: false }), { type: 'settlement_failed', data }],
    {
      call: waiting(state, 'watch'),
    },
  );
}

function resolvedByOperator(
  { payment }: SettlementState,
  {
    paid,
    evidence,
    operator,
    transaction,
  }: ByOperator & { readonly paid: boolean; readonly transaction?: Hex },
): LedgerEvent {
  const data = { ...ofPayment(payment), paid, evidence, operator, ...(transaction ? { transaction } : {}) };
  return { type: 'operator_settlement_resolved', data };
}

function transferOf(
  { network, nonce }: SignedPayment,
  transaction: string,
  logIndex: number,
): ClaimedTransfer {
  return { network, transaction, logIndex, paymentNonce: nonce };
}

/** Of a payment whose `settlement_started` was just recorded. */
export function startedState(
  payment: SignedPayment,
  callId: number,
  {
    status = 'settling',
    facilitator,
    approval,
  }: Partial<Pick<PaymentState, 'facilitator' | 'approval'>> & {
    readonly status?: 'settling' | 'authorized';
  } = {},
): SettlementState {
  return { payment, status, isOverdue: false, facilitator, approval, call: { kind: 'waiting', callId } };
}
