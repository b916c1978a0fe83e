import { z } from 'zod';
import { type Address, type Hex, isHex32, parseAddress } from '../../base/values/primitives.ts';
import { type QuoteEcho, quoteEcho } from './quote-echo.ts';

/**
 * What a version 2 offer adds to the `extra` of its scheme. A client echoes all of it in its payment, whose transaction is public
 * once it lands: the secret still distinguishes the offer's recipient from all others.
 */
export interface OfferExtra {
  readonly digest: Hex;
  readonly secret: string;
  /** Authenticates the quote; undefined if the gateway has no key for it, and the ledger has the quote. */
  readonly echo: QuoteEcho | undefined;
}

/** What only the recipient of an offer gets. */
export function writeOfferExtra({ digest, secret, echo }: OfferExtra): Readonly<Record<string, unknown>> {
  return { ...publicExtra(digest), offerSecret: secret, ...(echo ? { quote: echo } : {}) };
}

/** The same without the secret and the MAC, for the facilitator. */
export function publicExtra(digest: Hex): Readonly<Record<string, unknown>> {
  return { quoteDigest: digest };
}

/** What a payment echoes; undefined if it is missing or malformed. */
export interface EchoedExtra {
  readonly quoteDigest: Hex | undefined;
  readonly offerSecret: string | undefined;
  readonly echo: QuoteEcho | undefined;
  readonly eip712Name: string | undefined;
  readonly eip712Version: string | undefined;
  readonly submitter: Address | undefined;
}

export function readOfferExtra(extra: Readonly<Record<string, unknown>> = {}): EchoedExtra {
  const { quoteDigest, offerSecret, quote, name, version, facilitatorAddress } = extra;
  return {
    quoteDigest: typeof quoteDigest === 'string' && isHex32(quoteDigest) ? quoteDigest : undefined,
    offerSecret: textOf(offerSecret),
    echo: quote === undefined ? undefined : quoteEcho.safeParse(quote).data,
    eip712Name: textOf(name),
    eip712Version: textOf(version),
    submitter: parseAddress(textOf(facilitatorAddress) ?? ''),
  };
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** For the API's description. */
export const offerExtraWire = {
  offerSecret: z
    .string()
    .describe(
      'Known to the recipient of this offer alone. A repeated payment that echoes it gets its full answer; any other gets its status.',
    ),
  quote: quoteEcho
    .optional()
    .describe(
      'The rest of the quote, with a MAC: a payment that echoes it unchanged proves its price, although the gateway may not have stored the quote. Proves nothing about who pays.',
    ),
};
