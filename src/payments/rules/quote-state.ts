import type { SignedApproval } from '../../base/values/gas-sponsoring.ts';
import { type EventData, type EventOf, hasAspect, type RecordedEvent } from '../../ledger/rules/event.ts';
import type { JobId } from '../../base/values/job.ts';
import type { SignedPaymentData } from '../../ledger/rules/payment-events.ts';
import {
  isPayment,
  movePayment,
  type PaymentName,
  type PaymentProgress,
  recoveredProgress,
  progressOf,
} from './payment-progress.ts';

/** The payment of a stream. */
export interface PaymentState extends PaymentProgress {
  readonly binding: string;
  readonly bodySha256: string;
  readonly payment: SignedPaymentData;
  readonly startedAt: string;
  /** The body of a top-up that names the account of its credit. */
  readonly topUpOrder?: string;
  /** Who alone is asked to settle it; undefined where there was only one facilitator. */
  readonly facilitator?: string | undefined;
  /** What the facilitator submits before it settles it. */
  readonly approval?: SignedApproval | undefined;
}

/** The state of a quote's stream: a fold over its events and nothing else. One quote, one payment, one stream. */
export interface QuoteState {
  readonly version: number;
  readonly quote?: EventData<'quote_issued'>;
  /** From its start on the quote can be paid by no other. */
  readonly payment?: PaymentState;
  /** A caller was refused and no payment was started since. */
  readonly refused: boolean;
}

export const emptyQuoteState: QuoteState = { version: 0, refused: false };

export function foldQuote(events: Iterable<RecordedEvent>): QuoteState {
  let state = emptyQuoteState;
  for (const event of events) state = evolve(state, event);
  return state;
}

/** The state after one more event. Pure; an event without an effect on the quote only moves the version. */
export function evolve(state: QuoteState, event: RecordedEvent): QuoteState {
  const next = { ...state, version: event.version };
  if (!hasAspect(event, 'quoteState')) return next;
  switch (event.type) {
    case 'quote_issued':
      return { ...next, quote: event.data };
    case 'auth_denied':
      return { ...next, refused: true };
    case 'settlement_started':
      return { ...next, refused: false, payment: startedPayment(event) };
    case 'payment_recovered':
      return { ...next, payment: recoveredPayment(event) };
    default:
      return state.payment ? { ...next, payment: movePayment(state.payment, event) } : next;
  }
}

function startedPayment({ at, data }: EventOf<'settlement_started'>): PaymentState {
  const { binding, body_sha256: bodySha256, payment, top_up_order: topUpOrder, facilitator, approval } = data;
  const progress = {
    ...progressOf(data),
    binding,
    bodySha256,
    payment,
    startedAt: at,
    facilitator,
    approval,
  };
  return topUpOrder === undefined ? progress : { ...progress, topUpOrder };
}

/** What only the lost signature could tell is empty: a recovered payment is never sent to be settled. */
function recoveredPayment(event: EventOf<'payment_recovered'>): PaymentState {
  const { network, transfer_method, asset, symbol, decimals, amount, pay_to, payer, payment_nonce, refused } =
    event.data;
  const terms = { network, transfer_method, asset, symbol, decimals, amount, pay_to, payer };
  const validBefore = refused?.valid_before ?? '0';
  const unsigned = { valid_after: '0', valid_before: validBefore, signature: '0x', max_timeout_secs: 0 };
  const payment = { ...terms, nonce: payment_nonce, ...unsigned, x402_version: 2, ...noDomain } as const;
  return { ...recoveredProgress(event), binding: '', bodySha256: '', payment, startedAt: event.at };
}

const noDomain = { eip712_name: '', eip712_version: '' };

/** The job that a stream's call is for; undefined for a recovered payment for which no delivery was requested. */
export function jobOf({ quote, payment }: QuoteState): JobId | undefined {
  const named = quote ?? payment?.recovered?.redelivery;
  return named && { serviceId: named.service_id, jobIndex: named.job_index };
}

/** The payment of a stream if it is settled, refunded or not. */
export function paidPayment({ payment }: QuoteState): PaymentState | undefined {
  return payment?.status === 'settled' ? payment : undefined;
}

/** The atoms that a payment has moved; what was signed while it is not settled. */
export function paidAmount({ payment, settled }: Pick<PaymentState, 'payment' | 'settled'>): string {
  return settled?.amount ?? payment.amount;
}

export type ReceiptState =
  | 'quoted'
  | 'authorized'
  | 'settling'
  | 'settlement_unknown'
  | 'settlement_failed'
  | 'settled'
  | 'enqueued'
  | 'delivered'
  | 'completed'
  | 'dead_lettered'
  | 'refused'
  | 'expired'
  | 'refunded';

/** The state that a receipt reports. `nowSecs` is the database's clock: only expiry needs it. */
export function receiptState(state: QuoteState, nowSecs: number): ReceiptState {
  const { payment } = state;
  if (payment?.isRefunded && payment.status === 'settled') return 'refunded';
  if (payment?.call && payment.status === 'settled') return payment.call.status;
  if (payment) return payment.status;
  if (state.refused) return 'refused';
  return state.quote && state.quote.expires_at <= nowSecs ? 'expired' : 'quoted';
}

/** States that only an operator's decision, a reorg or a late landing can change. */
const finalStates: ReadonlySet<ReceiptState> = new Set([
  'completed',
  'dead_lettered',
  'refunded',
  'settlement_failed',
  'expired',
]);

/** Whether no client needs to wait for the next state. */
export function isFinal(state: ReceiptState): boolean {
  return finalStates.has(state);
}

/** Whether the payment settled, refunded or not; null while its outcome is unknown. */
export function isPaid({ payment }: QuoteState): boolean | null {
  if (payment?.status === 'settled') return true;
  return payment && payment.status !== 'settlement_failed' ? null : false;
}

/** Whether a payment may still take this stream's quote: one that fails ends it as well. */
export function isOpen({ quote, payment }: QuoteState, nowSecs: number): boolean {
  return quote !== undefined && quote.expires_at > nowSecs && payment === undefined;
}

/** The stream's payment if it has that name, which may leave the asset open. */
export function paymentOf(
  state: QuoteState,
  name: Omit<PaymentName, 'asset'> & { readonly asset: string | undefined },
): PaymentState | undefined {
  const { payment } = state;
  return payment && isPayment(payment.payment, name) ? payment : undefined;
}
