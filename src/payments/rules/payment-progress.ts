import type { PaymentStatus } from '../../ledger/rules/descriptor.ts';
import type { EventData, EventOf, TypesWith } from '../../ledger/rules/event.ts';

/**
 * The one state machine of payments. The gateway and receipts fold whole quotes with it (quote-state.ts); the books and
 * reconciliation keep only this much of each open payment. The verifiers (audit/rules, test/independent) do not use it,
 * so that a mistake here is found there.
 */
export interface PaymentProgress {
  readonly status: PaymentStatus;
  /** Why it failed or is unknown: a machine-readable code. */
  readonly reason?: string | undefined;
  /** While it is settled: the transfer, with the chain's proof if there is one. */
  readonly settled?: Settled | undefined;
  /** Transactions reported for it: where to look, no evidence. */
  readonly hints: readonly string[];
  /** The operator was alerted that it takes too long. */
  readonly isOverdue: boolean;
  readonly call?: CallState | undefined;
  /** Also after its call was withdrawn. */
  readonly wasEnqueued?: boolean | undefined;
  /** What was returned of it, in order: it stays settled. */
  readonly refunds: readonly Refund[];
  readonly isRefunded: boolean;
  /** The refund that was started and has not ended: until it has, nothing is delivered for the payment. */
  readonly refunding?: Refunding | undefined;
  /** What its payer has asked for, if it did. */
  readonly refundRequest?: RefundRequest | undefined;
  /** RFC 3339: when an operator granted it. Void once its call is delivered after that. */
  readonly refundGrantedAt?: string | undefined;
  /** While it is `authorized`: which attempt asks the upstream, and until when, in Unix seconds. */
  readonly upstream?: { readonly attempt: number; readonly endsAt: number } | undefined;
  /** The stored answer of its upstream, which is released once it is settled. */
  readonly answered?: AnsweredFacts | undefined;
  /** Found on the chain after the ledger had lost it: `redelivery` once its payer has signed for a request. */
  readonly recovered?: { readonly redelivery: EventData<'redelivery_requested'> | undefined } | undefined;
}

/** The answer of an upstream, as the ledger has it. */
export type AnsweredFacts = Omit<
  EventData<'upstream_answered'>,
  'network' | 'asset' | 'payer' | 'payment_nonce'
>;

const startedProgress: PaymentProgress = {
  status: 'settling',
  hints: [],
  isOverdue: false,
  refunds: [],
  isRefunded: false,
};

/** A payment that was just started. Its first attempt ends with its authorization, also where a clock that was wrong recorded a later time. */
export function progressOf({ payment, upstream }: EventData<'settlement_started'>): PaymentProgress {
  if (!upstream) return startedProgress;
  const endsAt = Math.min(upstream.ends_at, Number(payment.valid_before));
  return { ...startedProgress, status: 'authorized', upstream: { attempt: 1, endsAt } };
}

export interface Settled {
  /** The `payment_settled` event: its version in the stream, its place in the ledger and its time. */
  readonly version: number;
  readonly seq: number;
  readonly at: string;
  readonly amount: string;
  readonly transaction: string;
  readonly evidence: EventData<'payment_settled'>['evidence'];
  readonly proof?: TransferProof | undefined;
}

/** One transfer that returned a payment, or a part of it. */
export interface Refund {
  /** The stream's version of the event, and its time. */
  readonly version: number;
  readonly at: string;
  /** Atoms of the payment's token. */
  readonly amount: bigint;
  readonly to: string;
  readonly transaction: string;
  readonly proof: TransferProof;
}

/** A refund that an operator began to send, and that is neither recorded nor given up. */
export interface Refunding {
  /** RFC 3339: when it was started, and by whom. */
  readonly at: string;
  readonly operator: string;
  /** Atoms of the payment's token. */
  readonly amount: bigint;
  readonly to: string;
  /** The last final block when it was started. */
  readonly sinceBlock?: bigint | undefined;
  /** Whose transaction it is, and its nonce if that is known. */
  readonly sender?: string | undefined;
  readonly senderNonce?: number | undefined;
  /** What the wallet answered; undefined if it is unknown whether it was sent. */
  readonly transaction?: string | undefined;
  /** The operator who says that it was not sent. */
  readonly notSentBy?: string | undefined;
}

/** The payer's signed request for its money. */
export interface RefundRequest {
  /** RFC 3339. */
  readonly at: string;
  /** Of its reason, which is outside the ledger. */
  readonly reasonSha256: string;
  readonly decision:
    | undefined
    | { readonly kind: 'granted'; readonly at: string; readonly operator: string }
    | { readonly kind: 'declined'; readonly at: string; readonly operator: string; readonly why: string }
    /** The call was delivered after the request. */
    | { readonly kind: 'delivered'; readonly at: string };
}

/** The transfer's place on the chain. */
export interface TransferProof {
  readonly blockNumber: bigint;
  readonly blockHash: string;
  readonly logIndex: number;
}

export interface CallState {
  readonly callId: number;
  readonly status: 'enqueued' | 'delivered' | 'completed' | 'dead_lettered';
  /** The attempt that completed it: its result is stored under this number. */
  readonly attempt?: number;
  /** What it was completed with; undefined if its runner's result was not kept. */
  readonly result?: RecordedResult;
}

/** A runner's result, as the ledger has it. */
export interface RecordedResult {
  /** Hex with 0x. */
  readonly sha256: string;
  readonly bytes: number;
}

/** Identifies a payment. Plain text, since events are read back as text. */
export interface PaymentName {
  readonly network: string;
  readonly asset: string;
  readonly payer: string;
  readonly nonce: string;
}

export interface NamedProgress extends PaymentProgress {
  readonly payment: PaymentName;
}

/** The events that change a payment that was started. */
export type ProgressType = Exclude<
  TypesWith<'quoteState'>,
  'quote_issued' | 'auth_denied' | 'settlement_started' | 'payment_recovered'
>;

/** A payment after one more event of its stream; the same value if the event names another payment or another call. Pure. */
export function movePayment<P extends NamedProgress>(payment: P, event: EventOf<ProgressType>): P {
  return isNamedBy(event, payment) ? { ...payment, ...changeBy(event, payment) } : payment;
}

function isNamedBy({ data }: EventOf<ProgressType>, { status, payment, call }: NamedProgress): boolean {
  if ('network' in data) {
    const { network, asset, payer, payment_nonce: nonce } = data;
    return isPayment(payment, { network, asset, payer, nonce });
  }
  if (!('payment_nonce' in data)) return call?.callId === data.call_id;
  // a call belongs to a settled payment without a call
  return status === 'settled' && payment.nonce === data.payment_nonce && !call;
}

function changeBy(event: EventOf<ProgressType>, progress: PaymentProgress) {
  const { settled, hints, call } = progress;
  switch (event.type) {
    case 'upstream_repeated':
      return { upstream: { attempt: event.data.attempt, endsAt: event.data.ends_at } };
    case 'upstream_answered': {
      const { attempt, http_status, head_sha256, result_sha256, result_bytes, used } = event.data;
      const facts = { attempt, http_status, head_sha256, result_sha256, result_bytes };
      const answered = used === undefined ? facts : { ...facts, used };
      return { status: 'settling', answered } as const;
    }
    case 'settlement_unknown': {
      const { reason, transaction } = event.data;
      return { status: 'settlement_unknown', reason, hints: withHint(hints, transaction) } as const;
    }
    case 'settlement_failed':
      return { status: 'settlement_failed', reason: event.data.reason } as const;
    case 'payment_settled':
      return { status: 'settled', settled: settledBy(event) } as const;
    case 'settlement_confirmed':
      return { settled: settled && confirmedBy(event, settled) };
    case 'settlement_disproved': {
      const { reason } = event.data;
      return { ...unsettledBy(event.data, hints, call), status: 'settlement_unknown', reason } as const;
    }
    case 'settlement_reorged':
      return {
        ...unsettledBy(event.data, hints, call),
        status: 'settlement_unknown',
        reason: 'reorged',
      } as const;
    case 'settlement_overdue':
      return { isOverdue: true };
    case 'refunded':
      return refundedBy(event, progress);
    case 'refund_started':
      return { refunding: startedRefund(event) };
    case 'refund_sent':
      return { refunding: progress.refunding && sentRefund(event.data, progress.refunding) };
    case 'refund_not_sent':
      return { refunding: progress.refunding && { ...progress.refunding, notSentBy: event.data.operator } };
    case 'refund_abandoned':
      return { refunding: undefined };
    case 'refund_requested':
      return {
        refundRequest: { at: event.at, reasonSha256: event.data.reason_sha256, decision: undefined },
      };
    case 'refund_request_granted': {
      const { at } = event;
      return { refundGrantedAt: at, ...decided(progress, { kind: 'granted', at, ...by(event.data) }) };
    }
    case 'refund_request_declined': {
      const { at, data } = event;
      return decided(progress, { kind: 'declined', at, ...by(data), why: data.why });
    }
    case 'redelivery_requested':
      return { recovered: { redelivery: event.data } };
    case 'enqueued':
    case 'enqueued_again':
    case 'operator_requeued':
      return { call: { callId: event.data.call_id, status: 'enqueued' }, wasEnqueued: true } as const;
    case 'completed': {
      const { call_id: callId, attempt, result_sha256: sha256, result_bytes: bytes } = event.data;
      const result = sha256 === undefined || bytes === undefined ? {} : { result: { sha256, bytes } };
      return {
        call: { callId, status: 'completed', attempt, ...result },
        ...deliveredAfter(progress, event.at),
      } as const;
    }
    case 'delivered':
    case 'dead_lettered':
      return { call: { callId: event.data.call_id, status: event.type } };
    default:
      return event satisfies never;
  }
}

function by({ operator }: { readonly operator: string }) {
  return { operator };
}

/** The books do not fold the request itself. */
function decided(
  { refundRequest }: PaymentProgress,
  decision: RefundRequest['decision'],
): Pick<PaymentProgress, 'refundRequest'> {
  return { refundRequest: refundRequest && { ...refundRequest, decision } };
}

/** What was asked for before a delivery needs no decision any more, and what was granted is not due. */
function deliveredAfter(progress: PaymentProgress, at: string) {
  const isDeclined = progress.refundRequest?.decision?.kind === 'declined';
  return { refundGrantedAt: undefined, ...(!isDeclined && decided(progress, { kind: 'delivered', at })) };
}

/** A recovered payment: settled, and proven by the chain. */
export function recoveredProgress({ version, seq, at, data }: EventOf<'payment_recovered'>): PaymentProgress {
  const { transaction, amount } = data;
  const settled: Settled = { version, seq, at, amount, transaction, evidence: 'chain', proof: proofIn(data) };
  return { ...startedProgress, status: 'settled', settled, recovered: { redelivery: undefined } };
}

function settledBy({ version, seq, at, data }: EventOf<'payment_settled'>): Settled {
  const { transaction, amount, evidence, block_number, block_hash, log_index } = data;
  const isProven = block_number !== undefined && block_hash !== undefined && log_index !== undefined;
  const proof = isProven ? { proof: proofIn({ block_number, block_hash, log_index }) } : {};
  return { version, seq, at, amount, transaction, evidence, ...proof };
}

function confirmedBy({ data }: EventOf<'settlement_confirmed'>, settled: Settled): Settled {
  return { ...settled, transaction: data.transaction, evidence: 'chain', proof: proofIn(data) };
}

function refundedBy(
  { version, at, data }: EventOf<'refunded'>,
  { refunds, settled }: PaymentProgress,
): Pick<PaymentProgress, 'refunds' | 'isRefunded' | 'refunding'> {
  const { amount, refunded_to: to, transaction } = data;
  const refund = { version, at, amount: BigInt(amount), to, transaction, proof: proofIn(data) };
  const all = [...refunds, refund];
  // of a payment that was taken back only a started refund is recorded, which is all that was left
  const isRefunded = refundedAtoms({ refunds: all }) >= BigInt(settled?.amount ?? 0);
  // while one is started, no other one is recorded
  return { refunds: all, isRefunded, refunding: undefined };
}

function startedRefund({ at, data }: EventOf<'refund_started'>): Refunding {
  const { amount, refund_to: to, since_block: since, sender, sender_nonce: senderNonce, operator } = data;
  const sinceBlock = since === undefined ? undefined : BigInt(since);
  return { at, operator, amount: BigInt(amount), to, sinceBlock, sender, senderNonce };
}

/**
 * It was sent, whatever somebody has said before. Its nonce counts only if the account that it was started for has signed it: a Safe's
 * transaction is sent by anyone, and the spent nonce of that account proves nothing about the Safe's.
 */
export function sentRefund(
  {
    transaction,
    sender,
    sender_nonce: senderNonce,
  }: Pick<EventData<'refund_sent'>, 'transaction' | 'sender' | 'sender_nonce'>,
  refunding: Refunding,
): Refunding {
  const isOfSender = refunding.senderNonce === undefined && sender === refunding.sender;
  return { ...refunding, notSentBy: undefined, transaction, ...(isOfSender && { senderNonce }) };
}

/** How much of a payment was returned, in atoms. */
export function refundedAtoms({ refunds }: Pick<PaymentProgress, 'refunds'>): bigint {
  return refunds.reduce((sum, { amount }) => sum + amount, 0n);
}

/** A settlement that did not stand: the payment is open again, without its call unless a runner has it already. */
function unsettledBy(
  data: Pick<EventData<'settlement_disproved'>, 'transaction' | 'call'>,
  hints: readonly string[],
  call: CallState | undefined,
): Pick<PaymentProgress, 'settled' | 'hints' | 'call'> {
  return {
    settled: undefined,
    hints: withHint(hints, data.transaction),
    call: data.call === 'kept' ? call : undefined,
  };
}

function withHint(hints: readonly string[], transaction: string | undefined): readonly string[] {
  return transaction === undefined || hints.includes(transaction) ? hints : [...hints, transaction];
}

export function proofIn(
  data: Pick<EventData<'settlement_confirmed'>, 'block_number' | 'block_hash' | 'log_index'>,
): TransferProof {
  return {
    blockNumber: BigInt(data.block_number),
    blockHash: data.block_hash,
    logIndex: data.log_index,
  };
}

/** Whether a payment has that name, which may leave the asset open. */
export function isPayment(
  payment: PaymentName,
  name: Omit<PaymentName, 'asset'> & { readonly asset: string | undefined },
): boolean {
  return (
    (name.asset === undefined || payment.asset === name.asset) &&
    payment.network === name.network &&
    payment.payer === name.payer &&
    payment.nonce === name.nonce
  );
}
