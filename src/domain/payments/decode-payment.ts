import { z } from 'zod';
import { type PaymentIdentifier, paymentIdentifierKey, readIdentifier } from './payment-identifier.ts';
import {
  type Address,
  type Caip2,
  chainIdOf,
  type Hex,
  isHex32,
  parseAddress,
} from '../values/primitives.ts';
import { networkOfV1 } from './x402-v1.ts';

/** Longest payment header read: an honest one is under 2 KiB, ERC-1271 signatures included. */
const maxPaymentHeaderBytes = 16_384;

/** A payment header as far as it could be read: enough to recognise a payment, not yet enough to take it. */
export interface DecodedPayment {
  readonly x402Version: 1 | 2;
  readonly scheme: string;
  readonly network: Caip2;
  readonly payer: Address;
  /** Lower case, however it was spelt. */
  readonly nonce: Hex;
  /** A version 1 payment names no asset and no terms: it means the one token offered on its network. */
  readonly terms: PaymentTerms | undefined;
  /** The payer's own name for it. A version 1 payment has no place for one. */
  readonly identifier: PaymentIdentifier | undefined;
  /** The client's own spelling, for the strict check. */
  readonly payload: z.infer<typeof exactPayload>;
}

/** What a version 2 payment repeats of the offer it accepts. */
export interface PaymentTerms {
  readonly asset: Address;
  readonly payTo: string;
  readonly amount: string;
  /** The quote it names, where it names one. */
  readonly quoteDigest: Hex | undefined;
}

export type UndecodablePayment = 'payment_header_too_large' | 'undecodable_payment';

const text = z.string().max(10_000);
const exactPayload = z.looseObject({
  signature: text,
  authorization: z.looseObject({
    from: text,
    to: text,
    value: text,
    validAfter: text,
    validBefore: text,
    nonce: text,
  }),
});
const payloadV1 = z.object({ x402Version: z.literal(1), scheme: text, network: text, payload: exactPayload });
const payloadV2 = z.object({
  x402Version: z.literal(2),
  accepted: z.object({
    scheme: text,
    network: text,
    amount: text,
    asset: text,
    payTo: text,
    extra: z.record(z.string(), z.unknown()).optional(),
  }),
  payload: exactPayload,
  // whatever stands here, a payment that is known must be recognised
  extensions: z
    .object({ [paymentIdentifierKey]: z.unknown() })
    .optional()
    .catch(undefined),
});

/**
 * Reads a payment header: standard base64 of UTF-8 JSON, `X-PAYMENT` in the form of version 1, `PAYMENT-SIGNATURE` in
 * that of version 2. Lenient about spelling, so that a payment we already know is recognised; the check against its quote
 * is strict. Returns a machine word where nothing can be recognised in it.
 */
export function decodePayment(header: string, x402Version: 1 | 2): DecodedPayment | UndecodablePayment {
  if (header.length > maxPaymentHeaderBytes) return 'payment_header_too_large';
  const json = parseBase64Json(header);
  return (x402Version === 1 ? decodeV1(json) : decodeV2(json)) ?? 'undecodable_payment';
}

function decodeV1(json: unknown): DecodedPayment | undefined {
  const parsed = payloadV1.safeParse(json);
  const network = parsed.success ? networkOfV1(parsed.data.network) : undefined;
  const party = parsed.success ? partyOf(parsed.data.payload) : undefined;
  if (!parsed.success || !network || !party) return undefined;
  const { scheme, payload } = parsed.data;
  return { x402Version: 1, scheme, network, ...party, terms: undefined, identifier: undefined, payload };
}

function decodeV2(json: unknown): DecodedPayment | undefined {
  const parsed = payloadV2.safeParse(json);
  if (!parsed.success) return undefined;
  const { accepted, payload, extensions } = parsed.data;
  const party = partyOf(payload);
  const asset = parseAddress(accepted.asset);
  if (chainIdOf(accepted.network) === undefined || !party || !asset) return undefined;
  const { scheme, amount, payTo } = accepted;
  const digest = accepted.extra?.['quoteDigest'];
  const quoteDigest = typeof digest === 'string' && isHex32(digest) ? digest : undefined;
  const terms = { asset, payTo, amount, quoteDigest };
  const identifier = readIdentifier(extensions?.[paymentIdentifierKey]);
  return { x402Version: 2, scheme, network: accepted.network as Caip2, ...party, terms, identifier, payload };
}

function partyOf({
  authorization,
}: z.infer<typeof exactPayload>): { payer: Address; nonce: Hex } | undefined {
  const payer = parseAddress(authorization.from);
  const nonce = authorization.nonce.toLowerCase();
  return payer && isHex32(nonce) ? { payer, nonce } : undefined;
}

const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

function parseBase64Json(header: string): unknown {
  if (!base64.test(header)) return undefined;
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(header, 'base64')));
  } catch {
    return undefined;
  }
}
