import { refundedAtoms } from './payment-progress.ts';
import type { PaymentState } from './quote-state.ts';

export const refundReasons = ['dead_lettered', 'never_enqueued', 'recovered'] as const;
/**
 * Why a refund is due: the payment's call is a dead letter; it never had a call; it was found on the chain without a record of it, and
 * its payer has not asked for delivery.
 */
export type RefundReason = (typeof refundReasons)[number];

/** What people read for each reason; read models have them as text. */
export const refundReasonTexts: Readonly<Record<string, string>> = {
  dead_lettered: 'its call was not delivered',
  never_enqueued: 'it never had a call',
  recovered: 'the chain shows it, and no call was made for it',
} satisfies Record<RefundReason, string>;

/** Why a refund is due for a payment; undefined if none is, or the whole of it was refunded. */
export function refundReason(payment: PaymentState): RefundReason | undefined {
  if (payment.status !== 'settled' || payment.isRefunded) return undefined;
  if (payment.call) return payment.call.status === 'dead_lettered' ? 'dead_lettered' : undefined;
  if (payment.recovered) return payment.recovered.redelivery ? undefined : 'recovered';
  return 'never_enqueued';
}

/** What is left to be returned of a payment, in atoms of its token. */
export function remainingAtoms({ payment, refunds }: Pick<PaymentState, 'payment' | 'refunds'>): bigint {
  return BigInt(payment.amount) - refundedAtoms({ refunds });
}
