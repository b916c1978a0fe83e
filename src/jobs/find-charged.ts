import type { DecodedPayment } from '../domain/payments/decode-payment.ts';
import { optionOfToken, readSignedPayment } from '../domain/payments/payment.ts';
import type { Job } from './catalog.ts';
import { checkSignature } from './check-signature.ts';
import { type JobsContext, nowSecs } from './context.ts';
import { findLanded } from './find-settlement.ts';

/**
 * How to refuse a payment that fits no quote and may have been charged: its payer signed it over to us, and the chain shows
 * that it was used, or does not answer. A ledger that lost its last events knows neither the quote nor the payment, and a payer
 * who gets a 402 signs again and pays twice. Undefined where it was not charged.
 */
export async function findCharged(
  context: JobsContext,
  job: Job,
  decoded: DecodedPayment,
): Promise<'payment_unrecorded' | 'payment_use_unknown' | undefined> {
  const offer = optionOfToken(decoded, job.options);
  const payment = offer && readSignedPayment(decoded, offer);
  const chain = context.chains.get(decoded.network);
  if (!chain || !payment || payment.payTo !== offer.payTo) return undefined;
  const signed = await checkSignature(context, payment);
  if (signed.kind !== 'signed') return signed.kind === 'unavailable' ? 'payment_use_unknown' : undefined;
  const landing = await findLanded(chain, payment, nowSecs(context));
  switch (landing.kind) {
    case 'landed':
      return 'payment_unrecorded';
    case 'unsure':
      return 'payment_use_unknown';
    case 'not_landed':
      return undefined;
  }
}
