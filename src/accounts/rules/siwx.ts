import { z } from 'zod';
import { jsonValue } from '../../base/values/bounded-json.ts';
import { type Caip2, chainIdOf, parseAddress } from '../../base/values/primitives.ts';
import { type SiweMessage, siweMessage } from './siwe.ts';

/** The x402 extension, and the request header, by which a wallet signs in to an address that costs nothing. */
export const siwxKey = 'sign-in-with-x';

/** What a client signs: the values of a message, without its chain and its address. */
export type SiwxChallenge = Pick<SiweMessage, 'domain' | 'uri' | 'nonce' | 'issuedAt'> & {
  readonly expirationTime: string;
  readonly statement: string;
};

/** The extension's entry in a 402 that asks for a signature. */
export function siwxEntry(challenge: SiwxChallenge, networks: readonly Caip2[]) {
  const text = { type: 'string' };
  const names = ['domain', 'address', 'uri', 'version', 'chainId', 'type', 'nonce', 'issuedAt', 'signature'];
  return {
    info: { ...challenge, version: '1' as const, resources: [challenge.uri] },
    supportedChains: networks.map((chainId) => ({ chainId, type: 'eip191' as const })),
    schema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: Object.fromEntries(names.map((name) => [name, text])),
      required: names,
    },
  };
}

/** A message that a wallet has signed. */
export interface SignedIn {
  readonly message: SiweMessage;
  /** The signed message. */
  readonly text: string;
  readonly network: Caip2;
  /** As it came. */
  readonly signature: string;
}

const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

const wire = z.object({
  domain: z.string(),
  address: z.string(),
  statement: z.string().exactOptional(),
  uri: z.string(),
  version: z.literal('1'),
  chainId: z.string(),
  type: z.literal('eip191'),
  nonce: z.string(),
  issuedAt: z.string(),
  expirationTime: z.string().exactOptional(),
  notBefore: z.string().exactOptional(),
  requestId: z.string().exactOptional(),
  resources: z.array(z.string()).exactOptional(),
  signature: z.string(),
});

/** Reads the request header: base64 of JSON. Undefined if it is not a message of Sign-In with Ethereum and its signature. */
export function readSiwx(header: string): SignedIn | undefined {
  const json = base64.test(header) ? jsonValue(Buffer.from(header, 'base64')) : undefined;
  const { data } = wire.safeParse(json);
  const address = data && parseAddress(data.address);
  const chainId = data && chainIdOf(data.chainId);
  if (!data || !address || chainId === undefined) return undefined;
  const { signature, version: _, type: __, ...fields } = data;
  const message = { ...fields, address, chainId };
  try {
    return { message, text: siweMessage(message), network: `eip155:${chainId}`, signature };
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}
