import { signatureFormats } from '../../base/values/signature-format.ts';
import { concatBytes, numberToBytes, stringToBytes } from 'viem/utils';
import { keccak256 } from '../../base/values/keccak.ts';
import type { SettlementOption } from './quote.ts';
import { schemes } from './schemes/schemes.ts';

/** The x402 extension by which a gateway signs what it offers, and that it was paid, for others than the payer. */
export const offerReceiptKey = 'offer-receipt';

/** One way to pay for a job. `amount` is in the token's atoms, `validUntil` in Unix seconds. */
export type OfferPayload = {
  readonly version: 1;
  readonly resourceUrl: string;
  readonly scheme: string;
  readonly network: string;
  readonly asset: string;
  readonly payTo: string;
  readonly amount: string;
  readonly validUntil: number;
};

/** That a payment for a job was settled. `issuedAt` is in Unix seconds. */
export type ReceiptPayload = {
  readonly version: 1;
  readonly network: string;
  readonly resourceUrl: string;
  readonly payer: string;
  readonly issuedAt: number;
  /** Undefined if it shall not say which transfer paid. */
  readonly transaction?: string;
};

export type Signed =
  | {
      readonly format: 'eip712';
      readonly payload: OfferPayload | ReceiptPayload;
      /** 65 bytes in hex. */
      readonly signature: string;
    }
  /** The signature holds its payload. */
  | { readonly format: 'jws'; readonly signature: string };

export type SignedOffer = { readonly acceptIndex: number } & Signed;

export function offerPayload(
  option: Omit<SettlementOption, 'symbol' | 'decimals'>,
  resourceUrl: string,
  validUntil: number,
): OfferPayload {
  return {
    version: 1,
    resourceUrl,
    scheme: schemes[option.transferMethod].x402Scheme,
    network: option.network,
    asset: option.asset,
    payTo: option.payTo,
    amount: String(option.amount),
    validUntil,
  };
}

const draft = 'https://json-schema.org/draft/2020-12/schema';
const signedSchema = {
  type: 'object',
  properties: {
    format: { enum: signatureFormats },
    payload: { type: 'object' },
    signature: { type: 'string' },
  },
  required: ['format', 'signature'],
};

/** The extension's entry in a 402: an offer for each entry of `accepts`, in its order. */
export function offersEntry(offers: readonly SignedOffer[]) {
  const properties = { offers: { type: 'array', items: signedSchema } };
  return { info: { offers }, schema: { $schema: draft, type: 'object', properties, required: ['offers'] } };
}

/** The extension's entry in the answer to a payment. */
export function receiptEntry(receipt: Signed) {
  const properties = { receipt: signedSchema };
  return { info: { receipt }, schema: { $schema: draft, type: 'object', properties, required: ['receipt'] } };
}

/** The typed data of both; the chain is always 1, since no contract reads it. */
const typedData = {
  offer: typeOf('x402 offer', 'Offer', [
    ['version', 'uint256'],
    ['resourceUrl', 'string'],
    ['scheme', 'string'],
    ['network', 'string'],
    ['asset', 'string'],
    ['payTo', 'string'],
    ['amount', 'string'],
    ['validUntil', 'uint256'],
  ]),
  receipt: typeOf('x402 receipt', 'Receipt', [
    ['version', 'uint256'],
    ['network', 'string'],
    ['resourceUrl', 'string'],
    ['payer', 'string'],
    ['issuedAt', 'uint256'],
    ['transaction', 'string'],
  ]),
};

export type Signable =
  | { readonly kind: 'offer'; readonly payload: OfferPayload }
  | { readonly kind: 'receipt'; readonly payload: ReceiptPayload };

type Field = readonly [name: string, type: 'string' | 'uint256'];

function typeOf(domainName: string, name: string, fields: readonly Field[]) {
  const text = `${name}(${fields.map(([field, type]) => `${type} ${field}`).join(',')})`;
  const domain = concatBytes([
    hashOf('EIP712Domain(string name,string version,uint256 chainId)'),
    hashOf(domainName),
    hashOf('1'),
    word(1),
  ]);
  return { prefix: concatBytes([Uint8Array.of(0x19, 0x01), keccak256(domain)]), type: hashOf(text), fields };
}

/** The EIP-712 digest of a payload. Encoded by hand, like the digest of a quote: each payment waits for one. */
export function typedDataDigest({ kind, payload }: Signable): Uint8Array {
  const { prefix, type, fields } = typedData[kind];
  const words = fields.map(([field, fieldType]) => {
    const value: unknown = Reflect.get(payload, field);
    if (fieldType === 'uint256') return word(Number(value));
    return hashOf(typeof value === 'string' ? value : '');
  });
  return keccak256(concatBytes([prefix, keccak256(concatBytes([type, ...words]))]));
}

function hashOf(text: string): Uint8Array {
  return keccak256(stringToBytes(text));
}

function word(value: number): Uint8Array {
  return numberToBytes(value, { size: 32 });
}
