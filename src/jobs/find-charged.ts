import type { DecodedPayment } from '../domain/payments/decode-payment.ts';
import { type PaymentToken, readSignedPayment, tokensOfPayment } from '../domain/payments/payment.ts';
import { checkSignature } from './check-signature.ts';
import { type JobsContext, nowSecs } from './context.ts';
import { findLanded } from './find-settlement.ts';

/**
 * How to refuse a payment that fits no quote and may have been charged: its payer signed it over to us, and the chain shows
 * that it was used, or does not answer. A ledger that lost its last events knows neither the quote nor the payment, and a payer
 * who gets a 402 signs again and pays twice. Also in a token that has no rate now. Undefined where it was not charged.
 */
export async function findCharged(
  context: JobsContext,
  decoded: DecodedPayment,
): Promise<Charged | undefined> {
  // a version 1 payment does not name its token: the one that it was signed for is looked up
  for (const token of tokensOfPayment(decoded, context.settings.acceptedTokens)) {
    const charged = await findChargedIn(context, decoded, token);
    if (charged !== undefined) return charged;
  }
  return undefined;
}

type Charged = 'payment_unrecorded' | 'payment_use_unknown';

async function findChargedIn(
  context: JobsContext,
  decoded: DecodedPayment,
  token: PaymentToken,
): Promise<Charged | undefined> {
  const payment = readSignedPayment(decoded, token);
  const chain = context.chains.get(decoded.network);
  if (!chain || !payment || payment.payTo !== token.payTo) return undefined;
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
