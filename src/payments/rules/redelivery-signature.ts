import { hashTypedData } from 'viem/utils';
import { type Address, type Caip2, chainIdOf, type Hex } from '../../base/values/primitives.ts';
import { zeroHash } from './quote.ts';

/** What the payer of a recovered payment signs, so that it is delivered instead of refunded. */
export interface RedeliveryRequest {
  readonly network: Caip2;
  readonly asset: Address;
  /** The payment's. */
  readonly nonce: Hex;
  /** The lost quote; undefined for a version 1 payment, which names none. */
  readonly quoteDigest: Hex | undefined;
  readonly method: string;
  readonly path: string;
  readonly bodySha256: Hex;
}

/**
 * The payload and the signature of a landed payment are public, as the calldata of its transaction: they do not prove who sends
 * a request. This signature does, and it is valid for one payment and one request.
 */
export function redeliveryTypedData(request: RedeliveryRequest) {
  const { network, asset, nonce, quoteDigest = zeroHash, method, path, bodySha256 } = request;
  return {
    domain: { name: 'Tollbook', version: '1', chainId: chainIdOf(network) ?? 0 },
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
    message: { asset, paymentNonce: nonce, quoteDigest, method, path, bodySha256 },
  } as const;
}

/** The EIP-712 digest of that. */
export function redeliveryDigest(request: RedeliveryRequest): Hex {
  return hashTypedData(redeliveryTypedData(request));
}
