import { hashTypedData } from 'viem/utils';
import { type Address, type Caip2, chainIdOf, type Hex } from '../../base/values/primitives.ts';
import { zeroHash } from './quote.ts';

/** What the payer of a payment signs to get the receipt token. */
export interface ReceiptRequest {
  readonly network: Caip2;
  readonly asset: Address;
  readonly payer: Address;
  /** The payment's. */
  readonly nonce: Hex;
  /** Undefined where the payer does not know it. */
  readonly quoteDigest: Hex | undefined;
  /** The public URL of the gateway that asks. */
  readonly gateway: string;
  /** The gateway's own, for all of the above until then: a signature is worth nothing to another ledger. */
  readonly challenge: Hex;
  /** Unix seconds. */
  readonly expiresAt: number;
}

export function receiptTypedData(request: ReceiptRequest) {
  const { network, asset, payer, nonce, quoteDigest = zeroHash, gateway, challenge, expiresAt } = request;
  return {
    domain: { name: 'Tollbook', version: '1', chainId: chainIdOf(network) ?? 0 },
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
    message: {
      asset,
      payer,
      paymentNonce: nonce,
      quoteDigest,
      gateway,
      challenge,
      expiresAt: BigInt(expiresAt),
    },
  } as const;
}

/** The EIP-712 digest of that. */
export function receiptRequestDigest(request: ReceiptRequest): Hex {
  return hashTypedData(receiptTypedData(request));
}
