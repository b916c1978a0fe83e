import { hashTypedData } from 'viem/utils';
import { type Address, type Caip2, chainIdOf, type Hex } from '../../base/values/primitives.ts';
import { zeroHash } from './quote.ts';

/** What every signature of a payer names in addition to its money: the payment. */
interface NamedPayment {
  readonly network: Caip2;
  readonly asset: Address;
  /** The payment's. */
  readonly nonce: Hex;
  /** Undefined if the payer does not know it, and for a version 1 payment, which names none. */
  readonly quoteDigest: Hex | undefined;
}

/** What the payer of a payment signs to get the receipt token. */
export interface ReceiptRequest extends NamedPayment {
  readonly payer: Address;
  /** The public URL of the gateway that asks. */
  readonly gateway: string;
  /** The gateway's own, for all of the above until then: a signature is worth nothing to another ledger. */
  readonly challenge: Hex;
  /** Unix seconds. */
  readonly expiresAt: number;
}

export function receiptTypedData({ payer, gateway, challenge, expiresAt, ...payment }: ReceiptRequest) {
  const { asset, ...named } = messageOf(payment);
  return {
    domain: domainOf(payment),
    types: {
      ReceiptRequest: [
        { name: 'asset', type: 'address' },
        { name: 'payer', type: 'address' },
        { name: 'paymentNonce', type: 'bytes32' },
        { name: 'quoteDigest', type: 'bytes32' },
        { name: 'gateway', type: 'string' },
        { name: 'challenge', type: 'bytes32' },
        { name: 'expiresAt', type: 'uint64' },
      ],
    },
    primaryType: 'ReceiptRequest',
    message: { asset, payer, ...named, gateway, challenge, expiresAt: BigInt(expiresAt) },
  } as const;
}

export function receiptRequestDigest(request: ReceiptRequest): Hex {
  return hashTypedData(receiptTypedData(request));
}

/** What the payer of a recovered payment signs, so that it is delivered instead of refunded. */
interface RedeliveryRequest extends NamedPayment {
  readonly method: string;
  readonly path: string;
  readonly bodySha256: Hex;
}

/**
 * The payload and the signature of a landed payment are public, as the calldata of its transaction: they do not prove who sends
 * a request. This signature does, and it is valid for one payment and one request.
 */
export function redeliveryTypedData({ method, path, bodySha256, ...payment }: RedeliveryRequest) {
  return {
    domain: domainOf(payment),
    types: {
      Redelivery: [
        { name: 'asset', type: 'address' },
        { name: 'paymentNonce', type: 'bytes32' },
        { name: 'quoteDigest', type: 'bytes32' },
        { name: 'method', type: 'string' },
        { name: 'path', type: 'string' },
        { name: 'bodySha256', type: 'bytes32' },
      ],
    },
    primaryType: 'Redelivery',
    message: { ...messageOf(payment), method, path, bodySha256 },
  } as const;
}

export function redeliveryDigest(request: RedeliveryRequest): Hex {
  return hashTypedData(redeliveryTypedData(request));
}

/**
 * What the payer of a payment signs to ask for its refund. A quote has one payment, and one request of it counts: it needs no time and no
 * challenge.
 */
export function refundRequestTypedData(request: {
  readonly network: Caip2;
  /** That of the receipt. */
  readonly quoteDigest: Hex;
  readonly reason: string;
}) {
  const { quoteDigest, reason } = request;
  return {
    domain: domainOf(request),
    types: {
      RefundRequest: [
        { name: 'quoteDigest', type: 'bytes32' },
        { name: 'reason', type: 'string' },
      ],
    },
    primaryType: 'RefundRequest',
    message: { quoteDigest, reason },
  } as const;
}

function domainOf({ network }: Pick<NamedPayment, 'network'>) {
  return { name: 'Tollbook', version: '1', chainId: chainIdOf(network) ?? 0 } as const;
}

function messageOf({ asset, nonce, quoteDigest = zeroHash }: NamedPayment) {
  return { asset, paymentNonce: nonce, quoteDigest };
}
