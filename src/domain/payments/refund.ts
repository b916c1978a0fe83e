import type { PaymentState, QuoteState } from './quote-state.ts';

export const refundReasons = ['dead_lettered', 'never_enqueued', 'paid_twice'] as const;
/**
 * Why a payment's money is owed back: its call is a dead letter; it never had a call; it never had one, and another
 * payment took its quote.
 */
export type RefundReason = (typeof refundReasons)[number];

/** Why money is owed back for a payment of this story; undefined where none is, or none any more. */
export function refundReason(story: QuoteState, payment: PaymentState): RefundReason | undefined {
  if (payment.status !== 'settled' || payment.refunded) return undefined;
  if (payment.call) return payment.call.status === 'dead_lettered' ? 'dead_lettered' : undefined;
  const isSecond = story.payments.some((other) => other !== payment && other.status === 'settled');
  return isSecond ? 'paid_twice' : 'never_enqueued';
}
