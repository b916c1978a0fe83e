import type { EventData, LedgerEvent } from '../../ledger/rules/event.ts';
import { ofPayment, paymentFromData } from './payment.ts';
import { type Refunding, sentRefund } from './payment-progress.ts';
import type { PaymentState } from './quote-state.ts';
import { refundReason, refundRequestState, remainingAtoms } from './refund.ts';

type RefundData<T extends 'refund_started' | 'refund_sent' | 'refund_not_sent' | 'refund_abandoned'> = Omit<
  EventData<T>,
  'network' | 'asset' | 'payer' | 'payment_nonce'
>;

/** What an operator or a payer wants of a settled payment: its call, or its money. */
export type Wish =
  /** The payer of a recovered payment has signed for its request. */
  | { readonly kind: 'redeliver'; readonly data: EventData<'redelivery_requested'> }
  | { readonly kind: 'requeue'; readonly data: EventData<'operator_requeued'> }
  /** All that is left goes to the payer. */
  | {
      readonly kind: 'start_refund';
      readonly data: Omit<RefundData<'refund_started'>, 'amount' | 'refund_to'>;
    }
  | { readonly kind: 'note_sent'; readonly data: RefundData<'refund_sent'> }
  /** It was not sent and never will be: two operators have to say so. */
  | { readonly kind: 'say_not_sent'; readonly data: RefundData<'refund_not_sent'> }
  /** The chain shows that it cannot land any more. */
  | { readonly kind: 'abandon'; readonly data: RefundData<'refund_abandoned'> }
  | RecordRefund
  /** The payer asks for its money. */
  | {
      readonly kind: 'request_refund';
      readonly data: Pick<EventData<'refund_requested'>, 'reason_sha256' | 'signature'>;
      readonly failure: CallFailure;
    }
  /** Two answers to that; of a call in the queue the number of its attempts. */
  | { readonly kind: 'grant_request'; readonly operator: string; readonly attempt: number }
  | { readonly kind: 'decline_request'; readonly operator: string; readonly why: string };

/** What went wrong with a call that is not a dead letter: an attempt, or its answer says that it failed (a status of 400 and above). */
export type CallFailure = 'none' | 'attempt_failed' | 'answer_failed';

/** Why an attempt ended whose client left in the middle of the answer. As SQL knows it (take_unrepeated_calls): not repeated, it counts as delivered. */
export const clientLeft = 'client_left';

/** What went wrong with the call of a payment, by the events of its stream. That its client left is no failure of the call. */
export function failureOf(events: Iterable<LedgerEvent>): CallFailure {
  let failure: CallFailure = 'none';
  for (const { type, data } of events) {
    if (type === 'enqueued' || type === 'enqueued_again' || type === 'operator_requeued') failure = 'none';
    if (type === 'delivery_failed') failure = data.reason === clientLeft ? 'none' : 'attempt_failed';
    if (type === 'completed')
      failure = data.http_status !== undefined && data.http_status >= 400 ? 'answer_failed' : 'none';
  }
  return failure;
}

/** A transfer returned a part of the payment, or all of it. */
interface RecordRefund {
  readonly kind: 'record_refund';
  /** Atoms of the payment's token. */
  readonly amount: bigint;
  readonly to: string;
  /** Although the call was delivered or may still be. */
  readonly isGoodwill: boolean;
  /** What the chain shows of it; undefined if it was not asked yet. */
  readonly shown: EventData<'refunded'> | undefined;
}

export type WishRefusal =
  /** Its settlement is open, or was taken back. */
  | { readonly kind: 'unpaid' }
  /** It was refunded: as a whole, or for a delivery in part. */
  | { readonly kind: 'refunded' }
  /** A refund of it is started: nothing is delivered, and no other refund is sent or recorded. */
  | { readonly kind: 'refund_under_way'; readonly refunding: Refunding }
  /** No refund of it is started. */
  | { readonly kind: 'not_started' }
  /** Its call may still be delivered. */
  | { readonly kind: 'call_open' }
  | { readonly kind: 'delivered' }
  /** The same operator has said it before. */
  | { readonly kind: 'said_before' }
  /** Its payer has asked before, with another reason or before an operator declined. */
  | { readonly kind: 'requested_before' }
  /** No request waits for a decision. */
  | { readonly kind: 'not_requested' }
  /** There is nothing to decide: its refund is due, whatever its payer has asked for. */
  | { readonly kind: 'refund_due' };

export type Granted =
  | { readonly kind: 'record'; readonly events: readonly LedgerEvent[] }
  | { readonly kind: 'refused'; readonly why: WishRefusal };

/**
 * Whether a payment is delivered or refunded is one decision, in its stream: what may be appended to it at this state, by the payer's
 * redelivery or request for a refund, the operator's requeue and every step of a refund. Its events are appended with the version of the state. Pure.
 */
export function grant(known: PaymentState, wish: Wish): Granted {
  const { refunding, refunds, status } = known;
  const named = ofPayment(paymentFromData(known.payment));
  switch (wish.kind) {
    case 'redeliver':
    case 'requeue':
      if (refunds.length > 0) return refuse('refunded');
      if (status !== 'settled') return refuse('unpaid');
      if (refunding) return { kind: 'refused', why: { kind: 'refund_under_way', refunding } };
      return wish.kind === 'requeue'
        ? record({ type: 'operator_requeued', data: wish.data })
        : record({ type: 'redelivery_requested', data: wish.data });
    case 'start_refund': {
      if (status !== 'settled') return refuse('unpaid');
      if (known.isRefunded) return refuse('refunded');
      if (refunding) return { kind: 'refused', why: { kind: 'refund_under_way', refunding } };
      const money = { amount: String(remainingAtoms(known)), refund_to: known.payment.payer };
      return (
        refuseCall(known) ?? record({ type: 'refund_started', data: { ...named, ...money, ...wish.data } })
      );
    }
    case 'note_sent': {
      if (!refunding) return refuse('not_started');
      const { transaction, senderNonce } = sentRefund(wish.data, refunding);
      // the same again changes nothing, unless the node reports the nonce now
      return refunding.transaction === transaction && refunding.senderNonce === senderNonce
        ? { kind: 'record', events: [] }
        : record({ type: 'refund_sent', data: { ...named, ...wish.data } });
    }
    case 'say_not_sent': {
      if (!refunding) return refuse('not_started');
      const { operator, why } = wish.data;
      if (refunding.notSentBy === undefined)
        return record({ type: 'refund_not_sent', data: { ...named, why, operator } });
      return refunding.notSentBy.toLowerCase() === operator.toLowerCase()
        ? refuse('said_before')
        : record({ type: 'refund_abandoned', data: { ...named, proof: 'operators', why, operator } });
    }
    case 'abandon':
      return refunding
        ? record({ type: 'refund_abandoned', data: { ...named, ...wish.data } })
        : refuse('not_started');
    case 'record_refund': {
      const { amount, to, isGoodwill, shown: data } = wish;
      // one that was started may have been sent before its payment was taken back
      if (status !== 'settled' && !refunding) return refuse('unpaid');
      if (known.isRefunded) return refuse('refunded');
      // regardless of its sender
      if (refunding && (refunding.amount !== amount || refunding.to !== to))
        return { kind: 'refused', why: { kind: 'refund_under_way', refunding } };
      return (
        refuseCall(known, isGoodwill) ?? {
          kind: 'record',
          events: data ? [{ type: 'refunded', data }] : [],
        }
      );
    }
    case 'request_refund':
      return (
        grantRequest(known, wish) ?? record({ type: 'refund_requested', data: { ...named, ...wish.data } })
      );
    case 'grant_request': {
      const { operator, attempt } = wish;
      const { call } = known;
      const given = { type: 'refund_request_granted', data: { ...named, operator } } as const;
      return (
        refuseDecision(known) ?? {
          kind: 'record',
          events:
            call && call.status !== 'completed'
              ? [...giveUp(call.callId, attempt, operator), given]
              : [given],
        }
      );
    }
    case 'decline_request': {
      const { operator, why } = wish;
      return (
        refuseDecision(known) ??
        record({ type: 'refund_request_declined', data: { ...named, why, operator } })
      );
    }
  }
}

/** Why a request is not recorded, or that the same one is on record; undefined if it may be. */
function grantRequest(
  known: PaymentState,
  { data, failure }: Extract<Wish, { kind: 'request_refund' }>,
): Granted | undefined {
  const { status, call, refundRequest } = known;
  const isOver = refundRequest?.decision?.kind === 'delivered' && failure === 'answer_failed';
  if (refundRequest && !isOver)
    return refundRequest.reasonSha256 === data.reason_sha256
      ? { kind: 'record', events: [] }
      : refuse('requested_before');
  if (status !== 'settled') return refuse('unpaid');
  if (known.isRefunded) return refuse('refunded');
  if (refundReason(known) !== undefined) return undefined;
  if (call?.status === 'completed') return failure === 'answer_failed' ? undefined : refuse('delivered');
  return call && failure === 'attempt_failed' ? undefined : refuse('call_open');
}

function refuseDecision(known: PaymentState): Granted | undefined {
  if (known.status !== 'settled') return refuse('unpaid');
  switch (refundRequestState(known)) {
    case 'open':
      // one of a call that was withdrawn waits until it is made again, or its refund is due
      return known.call ? undefined : refuse('call_open');
    case 'due':
      return refuse('refund_due');
    case 'refunded':
      return refuse('refunded');
    default:
      return refuse('not_requested');
  }
}

/** A call that waits becomes a dead letter that is never sent again. */
function giveUp(callId: number, attempt: number, operator: string): LedgerEvent[] {
  const why = 'its payer asked for a refund';
  return [
    { type: 'dead_lettered', data: { call_id: callId, attempt, reason: 'discarded' } },
    { type: 'operator_discarded', data: { call_id: callId, why, operator } },
  ];
}

/** A call that a runner has, or may get, is not refunded; nor one whose payer has asked for it and that waits to be released. */
function refuseCall(known: PaymentState, isGoodwill = false): Granted | undefined {
  const { call, recovered, refundGrantedAt } = known;
  if (recovered?.redelivery && !call) return refuse('call_open');
  if (isGoodwill || !call || call.status === 'dead_lettered') return undefined;
  if (call.status !== 'completed') return refuse('call_open');
  return refundGrantedAt === undefined ? refuse('delivered') : undefined;
}

function refuse(kind: Exclude<WishRefusal['kind'], 'refund_under_way'>): Granted {
  return { kind: 'refused', why: { kind } };
}

function record(event: LedgerEvent): Granted {
  return { kind: 'record', events: [event] };
}
