import { didOf, type OfferKey } from '../../payments/rules/offer-key.ts';
import { offerPayload, type SignedOffer } from '../../payments/rules/offer-receipt.ts';
import type { RotatingSecret } from '../../base/values/rotating-secret.ts';
import type { OfferedQuote } from './answer.ts';
import { jobUrl } from './catalog.ts';

/** A signed offer for each option of a quote. They end with the quote, and serve the quotes that follow it shortly. */
export function signOffers(
  [key]: RotatingSecret<OfferKey>,
  publicUrl: string,
  quote: Pick<OfferedQuote, 'serviceId' | 'jobIndex' | 'options' | 'expiresAt'>,
): readonly SignedOffer[] {
  const url = jobUrl(publicUrl, quote);
  const did = didOf(publicUrl);
  return quote.options.map((option, acceptIndex) => {
    const payload = offerPayload(option, url, quote.expiresAt);
    return { acceptIndex, ...key.sign({ kind: 'offer', payload }, did) };
  });
}

/** How much earlier than its quote a signed offer may end, in seconds: a 402 does not wait for new signatures each time. */
const mostEarlySecs = 30;

/** Whether offers that are signed until then, in Unix seconds, end with this quote or shortly before it: never after it. */
export function isSignedFor(
  signedUntil: number,
  { expiresAt }: Pick<OfferedQuote, 'expiresAt'>,
  quoteTtlSecs: number,
): boolean {
  const earlySecs = expiresAt - signedUntil;
  return earlySecs >= 0 && earlySecs <= Math.min(mostEarlySecs, quoteTtlSecs / 10);
}
