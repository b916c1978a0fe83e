import { refundedAtoms } from './payment-progress.ts';
import { paidAmount, type PaymentState } from './quote-state.ts';

export const refundReasons = ['dead_lettered', 'never_enqueued', 'recovered', 'granted'] as const;
/**
 * Why a refund is due: the payment's call is a dead letter; it never had a call; it was found on the chain without a record of it, and
 * its payer has not asked for delivery; its payer has asked for it after a failed answer of a route, and an operator has agreed.
 */
export type RefundReason = (typeof refundReasons)[number];

/** What people read for each reason; read models have them as text. */
export const refundReasonTexts: Readonly<Record<string, string>> = {
  dead_lettered: 'its call was not delivered',
  never_enqueued: 'it never had a call',
  recovered: 'the chain shows it, and no call was made for it',
  granted: 'its payer asked for it, and an operator agreed',
} satisfies Record<RefundReason, string>;

/** Why a refund is due for a payment; undefined if none is, or the whole of it was refunded. */
export function refundReason(payment: PaymentState): RefundReason | undefined {
  if (payment.status !== 'settled' || payment.isRefunded) return undefined;
  const { call, refundGrantedAt } = payment;
  if (call?.status === 'completed') return refundGrantedAt === undefined ? undefined : 'granted';
  if (call) return call.status === 'dead_lettered' ? 'dead_lettered' : undefined;
  if (payment.recovered) return payment.recovered.redelivery ? undefined : 'recovered';
  return 'never_enqueued';
}

/** What became of a request for a refund; `due`: it needs no decision, the refund is due anyway. */
export type RefundRequestState = 'open' | 'due' | 'granted' | 'declined' | 'delivered' | 'refunded';

/**
 * The state of what the payer of a payment has asked for; undefined if it did not ask, and while the payment is taken back: nothing is
 * owed for it then, and an operator has nothing to decide.
 */
export function refundRequestState(payment: PaymentState): RefundRequestState | undefined {
  const { status, refundRequest, isRefunded } = payment;
  if (!refundRequest || status !== 'settled') return undefined;
  if (isRefunded) return 'refunded';
  return refundRequest.decision?.kind ?? (refundReason(payment) === undefined ? 'open' : 'due');
}

/** What is left to be returned of a payment, in atoms of its token. */
export function remainingAtoms({
  payment,
  settled,
  refunds,
}: Pick<PaymentState, 'payment' | 'settled' | 'refunds'>): bigint {
  return BigInt(paidAmount({ payment, settled })) - refundedAtoms({ refunds });
}
