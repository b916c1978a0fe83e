import { paymentEvents } from '../../ledger/rules/payment-events.ts';
import { jsonValue } from '../../base/values/bounded-json.ts';
import { canonicalJson } from '../../base/values/canonical-json.ts';
import type { Hex } from '../../base/values/primitives.ts';
import { fullOptions, optionFromJson, type Quote, quoteDigest, quoteTerms, termsFromData } from './quote.ts';

/** The query parameter that carries a quote's token. */
export const quoteTokenParameter = 'quote';

/**
 * No token is longer, in characters: a quote's options are as many as one offer holds, and proxies take request lines of 8 KiB.
 */
const mostTokenChars = 7_168;

/** What a token says: a quote, and the proof that a gateway of this ledger made the token. */
export interface ReadToken {
  readonly quote: Quote;
  readonly digest: Hex;
  readonly proof: string;
}

/** A quote on record, as its token says it: with all its options. */
export type NamedQuote = Pick<ReadToken, 'quote' | 'digest'>;

/** All terms of a quote as one word of a URL: base64url of their canonical JSON, a dot, and the proof. */
export function writeQuoteToken(quote: Quote, proof: string): string {
  return `${Buffer.from(canonicalJson(quoteTerms(quote)), 'utf8').toString('base64url')}.${proof}`;
}

/** Undefined if the text is not exactly what {@link writeQuoteToken} writes for the quote that it names. */
export function readQuoteToken(token: string): ReadToken | undefined {
  const [encoded = '', proof, ...more] = token.split('.');
  if (token.length > mostTokenChars || proof === undefined || more.length > 0) return undefined;
  const quote = readTerms(Buffer.from(encoded, 'base64url').toString('utf8'));
  return quote && writeQuoteToken(quote, proof) === token
    ? { quote, digest: quoteDigest(quote), proof }
    : undefined;
}

const wire = paymentEvents.quote_issued.schema.omit({ summarised: true, source: true });
const beyondWord = 2n ** 256n;

function readTerms(text: string): Quote | undefined {
  const { data } = wire.safeParse(jsonValue(text));
  if (!data || fullOptions(data).length < data.options.length) return undefined;
  const terms = termsFromData(data);
  // a price that has more bits than the digest's word
  return terms.priceWei < beyondWord
    ? { ...terms, options: fullOptions(data).map(optionFromJson) }
    : undefined;
}
