import type { RecordedEvent } from '../../ledger/rules/event.ts';
import { jobOf, paidPayment, type PaymentState, type QuoteState } from '../../payments/rules/quote-state.ts';
import { type RefundReason, refundReason } from '../../payments/rules/refund.ts';

/** How a paid call ended, for the client that wants to be called then. */
export interface CallEnd {
  readonly state: 'completed' | 'refund_due' | 'refunded';
  /** Why a refund is due. */
  readonly reason?: RefundReason;
  /** The newest event that could be an end: of two messages about a call the one with the higher number is newer. */
  readonly seq: number;
  readonly at: string;
  readonly payment: PaymentState;
}

/** The events that may be the end of a call. `payment_settled`: of a payment that gets no call. */
const endTypes: ReadonlySet<string> = new Set([
  'payment_settled',
  'completed',
  'dead_lettered',
  'refund_request_granted',
  'refunded',
]);

/** The present end of the payment for a request; undefined while it has not ended, and if it was not charged. */
export function callEnd(
  state: QuoteState,
  events: readonly RecordedEvent[],
  binding: string,
): CallEnd | undefined {
  const payment = paidPayment(state);
  const last = events.findLast(({ type }) => endTypes.has(type));
  if (!payment || !last || (payment.recovered?.redelivery ?? payment).binding !== binding) return undefined;
  const end = { seq: last.seq, at: last.at, payment };
  if (payment.isRefunded) return { ...end, state: 'refunded' };
  const reason = refundReason(payment);
  if (reason) return { ...end, state: 'refund_due', reason };
  return payment.call?.status === 'completed' ? { ...end, state: 'completed' } : undefined;
}

/** The message about an end: it has no result, which the receipt gives for its token. */
export function callbackBody(
  state: QuoteState,
  events: readonly RecordedEvent[],
  { state: ended, reason, seq, at, payment }: CallEnd,
  receipt: { readonly digest: string; readonly url: string },
): string {
  const job = jobOf(state);
  const { call } = payment;
  const completed = events.findLast((event) => event.type === 'completed');
  const { result_sha256, result_bytes } = completed?.type === 'completed' ? completed.data : {};
  return JSON.stringify({
    type: `payment.${ended}`,
    timestamp: at,
    data: {
      seq,
      quote_digest: receipt.digest,
      receipt_url: receipt.url,
      ...(job && { service_id: job.serviceId, job_index: job.jobIndex }),
      ...(call && { call_id: call.callId }),
      ...(reason && { reason }),
      ...(payment.refunds.length > 0 && {
        refunds: payment.refunds.map(({ amount, transaction }) => ({ amount: String(amount), transaction })),
      }),
      ...(ended === 'completed' && { result_sha256, result_bytes }),
    },
  });
}
