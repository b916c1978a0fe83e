import { type EventData, type EventOf, hasAspect, type RecordedEvent } from '../events/event.ts';
import type { JobId } from './job.ts';
import type { SignedPaymentData } from '../events/payment-events.ts';
import {
  findPayment,
  movePayments,
  type PaymentName,
  type PaymentProgress,
  recoveredProgress,
  startedProgress,
} from './payment-progress.ts';

/** One payment within a stream. A second one is only possible after the first failed before it was broadcast. */
export interface PaymentState extends PaymentProgress {
  readonly binding: string;
  readonly bodySha256: string;
  readonly payment: SignedPaymentData;
  readonly startedAt: string;
  /** The body of a top-up that names the account of its credit. */
  readonly topUpOrder?: string;
}

/** The state of a quote's stream: a fold over its events and nothing else. */
export interface QuoteState {
  readonly version: number;
  readonly quote?: EventData<'quote_issued'>;
  /** In the order they were started. */
  readonly payments: readonly PaymentState[];
  /** A caller was refused and no payment was started since. */
  readonly refused: boolean;
}

export const emptyQuoteState: QuoteState = { version: 0, payments: [], refused: false };

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
      return { ...next, refused: false, payments: [...state.payments, startedPayment(event)] };
    case 'payment_recovered':
      return { ...next, payments: [...state.payments, recoveredPayment(event)] };
    default:
      return { ...next, payments: movePayments(state.payments, event) };
  }
}

function startedPayment({ at, data }: EventOf<'settlement_started'>): PaymentState {
  const { binding, body_sha256: bodySha256, payment, top_up_order: topUpOrder } = data;
  const progress = { ...startedProgress, binding, bodySha256, payment, startedAt: at };
  return topUpOrder === undefined ? progress : { ...progress, topUpOrder };
}

/** What only the lost signature could tell is empty: a settled payment is never settled again. */
function recoveredPayment(event: EventOf<'payment_recovered'>): PaymentState {
  const { network, transfer_method, asset, symbol, decimals, amount, pay_to, payer, payment_nonce } =
    event.data;
  const terms = { network, transfer_method, asset, symbol, decimals, amount, pay_to, payer };
  const unsigned = { valid_after: '0', valid_before: '0', signature: '0x', max_timeout_secs: 0 };
  const payment = { ...terms, nonce: payment_nonce, ...unsigned, x402_version: 2, ...noDomain } as const;
  return { ...recoveredProgress(event), binding: '', bodySha256: '', payment, startedAt: event.at };
}

const noDomain = { eip712_name: '', eip712_version: '' };

/** The job that a stream's call is for; undefined for a recovered payment for which no delivery was requested. */
export function jobOf({ quote, payments }: QuoteState): JobId | undefined {
  const named = quote ?? payments.find(({ recovered }) => recovered?.redelivery)?.recovered?.redelivery;
  return named && { serviceId: named.service_id, jobIndex: named.job_index };
}

/**
 * The payment that a receipt reports: the first that settled and was not refunded as a whole, else the first that settled; undefined
 * where none did. A second settled payment in a stream is one that was reported as failed and landed late.
 */
export function paidPayment(state: QuoteState): PaymentState | undefined {
  const settled = state.payments.filter(({ status }) => status === 'settled');
  const inOrder = settled.toSorted((a, b) => (a.settled?.version ?? 0) - (b.settled?.version ?? 0));
  return inOrder.find(({ isRefunded }) => !isRefunded) ?? inOrder[0];
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
  const last = paidPayment(state) ?? state.payments.at(-1);
  if (last?.isRefunded && last.status === 'settled') return 'refunded';
  if (last?.call && last.status === 'settled') return last.call.status;
  if (last && last.status !== 'settlement_failed') return last.status;
  if (state.refused) return 'refused';
  if (last) return 'settlement_failed';
  return state.quote && state.quote.expires_at <= nowSecs ? 'expired' : 'quoted';
}

/** States that only an operator's decision, a reorg or another payment can change. */
const finalStates: ReadonlySet<ReceiptState> = new Set([
  'completed',
  'dead_lettered',
  'refunded',
  'settlement_failed',
  'expired',
]);

/** Whether nobody needs to wait for the next state. */
export function isFinal(state: ReceiptState): boolean {
  return finalStates.has(state);
}

/** Whether the payment settled, refunded or not; null while its outcome is unknown. */
export function isPaid(state: QuoteState): boolean | null {
  if (state.payments.some((payment) => payment.status === 'settled')) return true;
  return state.payments.some((payment) => payment.status !== 'settlement_failed') ? null : false;
}

/** Whether another payment may still take this stream's quote. */
export function isOpen(state: QuoteState, nowSecs: number): boolean {
  return (
    state.quote !== undefined &&
    state.quote.expires_at > nowSecs &&
    state.payments.every((payment) => payment.status === 'settlement_failed')
  );
}

/** The payment of that name; where the name leaves the asset open, the last one that matches. */
export function paymentOf(
  state: QuoteState,
  name: Omit<PaymentName, 'asset'> & { readonly asset: string | undefined },
): PaymentState | undefined {
  return findPayment(state.payments, name);
}
