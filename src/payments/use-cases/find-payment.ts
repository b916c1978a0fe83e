import type pg from 'pg';
import { paymentFromData } from '../rules/payment.ts';
import { foldQuote, type PaymentState, paymentOf, type QuoteState } from '../rules/quote-state.ts';
import { readStream } from '../../ledger/store/streams.ts';
import { paymentKey } from '../store/claims.ts';

/** The payment of a quote with this key, as `paymentKey()` makes it. */
export function findByKey(quote: QuoteState, key: string): PaymentState | undefined {
  const { payment } = quote;
  return payment && paymentKey(paymentFromData(payment.payment)) === key ? payment : undefined;
}

/** The payment that a `settlement_disproved` or `settlement_reorged` names, in its current state, and its quote. */
export async function findTakenBack(
  { pool }: { readonly pool: pg.Pool },
  stream: string,
  seq: number,
): Promise<{ readonly quote: QuoteState; readonly known: PaymentState | undefined }> {
  const { events } = await readStream(pool, stream);
  const event = events.find((candidate) => candidate.seq === seq);
  const quote = foldQuote(events);
  if (event?.type !== 'settlement_disproved' && event?.type !== 'settlement_reorged')
    return { quote, known: undefined };
  return { quote, known: paymentOf(quote, { ...event.data, nonce: event.data.payment_nonce }) };
}
