import { z } from 'zod';
import {
  type PaymentIdentifier,
  paymentIdentifierKey,
  readIdentifier,
} from '../../base/values/payment-identifier.ts';
import { type EchoedExtra, readOfferExtra } from './offer-extra.ts';
import { jsonValue } from '../../base/values/bounded-json.ts';
import { type Address, type Caip2, chainIdOf, type Hex, parseAddress } from '../../base/values/primitives.ts';
import type { ParsedPayload } from './schemes/scheme.ts';
import { schemes } from './schemes/schemes.ts';
import { type TransferMethod, transferMethods } from '../../base/values/transfer-method.ts';
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
  /** The payer's own id for it. Version 1 has no field for one. */
  readonly identifier: PaymentIdentifier | undefined;
  /** By the payload's shape, whatever scheme the payment names. */
  readonly transferMethod: TransferMethod;
  readonly payload: ParsedPayload;
  /** As they came, for the facilitator; none that is nested so deeply that it could not be written again. */
  readonly extensions: Readonly<Record<string, unknown>> | undefined;
}

/** What a version 2 payment repeats of the offer it accepts. */
export interface PaymentTerms extends EchoedExtra {
  readonly asset: Address;
  readonly payTo: string;
  readonly amount: string;
  /** The quote it names, if it names one. */
  readonly quoteDigest: Hex | undefined;
  /** Passed to nothing and recorded nowhere, like the MAC of `echo`. */
  readonly offerSecret: string | undefined;
}

export type UndecodablePayment = 'payment_header_too_large' | 'undecodable_payment';

const text = z.string().max(10_000);
const payloadV1 = z.object({ x402Version: z.literal(1), scheme: text, network: text, payload: z.unknown() });
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
  payload: z.unknown(),
  // a known payment is recognised whatever its extensions hold
  extensions: z.record(z.string(), z.unknown()).optional().catch(undefined),
});

/**
 * Reads a payment header: standard base64 of UTF-8 JSON, `X-PAYMENT` in the form of version 1, `PAYMENT-SIGNATURE` in
 * that of version 2. Lenient about spelling, so that a payment we already know is recognised; the check against its quote
 * is strict. Returns a reason code if it names no payment.
 */
export function decodePayment(header: string, x402Version: 1 | 2): DecodedPayment | UndecodablePayment {
  if (header.length > maxPaymentHeaderBytes) return 'payment_header_too_large';
  const json = parseBase64Json(header);
  return (x402Version === 1 ? decodeV1(json) : decodeV2(json)) ?? 'undecodable_payment';
}

function decodeV1(json: unknown): DecodedPayment | undefined {
  const parsed = payloadV1.safeParse(json);
  const network = parsed.success ? networkOfV1(parsed.data.network) : undefined;
  const signed = parsed.success ? readPayload(parsed.data.payload) : undefined;
  if (!parsed.success || !network || !signed) return undefined;
  const { scheme } = parsed.data;
  return {
    x402Version: 1,
    scheme,
    network,
    ...signed,
    terms: undefined,
    identifier: undefined,
    extensions: undefined,
  };
}

function decodeV2(json: unknown): DecodedPayment | undefined {
  const parsed = payloadV2.safeParse(json);
  if (!parsed.success) return undefined;
  const { accepted, payload, extensions } = parsed.data;
  const signed = readPayload(payload);
  const asset = parseAddress(accepted.asset);
  if (chainIdOf(accepted.network) === undefined || !signed || !asset) return undefined;
  const { scheme, amount, payTo } = accepted;
  const terms = { asset, payTo, amount, ...readOfferExtra(accepted.extra) };
  const identifier = readIdentifier(extensions?.[paymentIdentifierKey]);
  const passedOn = extensions && (isShallow(extensions, maxDepth) ? extensions : undefined);
  return {
    x402Version: 2,
    scheme,
    network: accepted.network as Caip2,
    ...signed,
    terms,
    identifier,
    extensions: passedOn,
  };
}

/** An entry of the extension bazaar with its schemas has ten or so. */
const maxDepth = 64;

function isShallow(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return depth > 0 && Object.values(value).every((each) => isShallow(each, depth - 1));
}

type SignedPart = Pick<DecodedPayment, 'transferMethod' | 'payload' | 'payer' | 'nonce'>;

function readPayload(received: unknown): SignedPart | undefined {
  for (const transferMethod of transferMethods) {
    const payload = schemes[transferMethod].parse(received);
    if (payload) return { transferMethod, payload, payer: payload.payer, nonce: payload.nonce };
  }
  return undefined;
}

const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** The header's length bounds both: a known payment is recognised whatever other fields there are. */
const headerBounds = { maxDepth: maxPaymentHeaderBytes, maxMarks: maxPaymentHeaderBytes };

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** What is written again as it came is base64: the pattern takes ten times as long, and decides only about what is not. */
function parseBase64Json(header: string): unknown {
  const bytes = Buffer.from(header, 'base64');
  if (bytes.toString('base64') !== header && !base64.test(header)) return undefined;
  try {
    return jsonValue(utf8.decode(bytes), headerBounds);
  } catch {
    return undefined;
  }
}
