import { z } from 'zod';
import { type Hex, isHex32 } from '../values/primitives.ts';

/**
 * What a version 2 offer adds to the `extra` of its scheme. A client echoes all of it in its payment, whose transaction is public
 * once it lands: by the secret the offer's recipient can still be told from everyone else.
 */
export interface OfferExtra {
  readonly digest: Hex;
  readonly secret: string;
}

/** What is given to the recipient of an offer, and to no one else. */
export function writeOfferExtra({ digest, secret }: OfferExtra): Readonly<Record<string, string>> {
  return { ...publicExtra(digest), offerSecret: secret };
}

/** The same without the secret, for the facilitator. */
export function publicExtra(digest: Hex): Readonly<Record<string, string>> {
  return { quoteDigest: digest };
}

/** What a payment echoes; undefined where it is missing or malformed. */
export function readOfferExtra(extra: Readonly<Record<string, unknown>> = {}): {
  readonly quoteDigest: Hex | undefined;
  readonly offerSecret: string | undefined;
} {
  const { quoteDigest, offerSecret } = extra;
  return {
    quoteDigest: typeof quoteDigest === 'string' && isHex32(quoteDigest) ? quoteDigest : undefined,
    offerSecret: typeof offerSecret === 'string' ? offerSecret : undefined,
  };
}

/** For the API's description. */
export const offerExtraWire = {
  offerSecret: z.string().meta({
    description:
      'Known to the recipient of this offer alone. A repeated payment that echoes it gets its full answer; any other gets its status.',
  }),
};
