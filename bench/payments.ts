import { randomBytes } from 'node:crypto';
import { privateKeyToAccount } from 'viem/accounts';
import { devnetKeys } from '../src/devnet/accounts.ts';
import { terms } from './terms.ts';

/** One settlement option of a version 2 offer. */
export interface Offer {
  readonly payTo: string;
  readonly amount: string;
  readonly maxTimeoutSeconds: number;
}

const payer = privateKeyToAccount(devnetKeys.payer);
const from = payer.address.toLowerCase();

export function firstOffer(paymentRequired: string): Offer {
  const { accepts } = JSON.parse(Buffer.from(paymentRequired, 'base64').toString()) as {
    readonly accepts: readonly Offer[];
  };
  const offer = accepts[0];
  if (!offer) throw new Error('a 402 that offers nothing');
  return offer;
}

/** A payment header for this offer, with a fresh nonce. Signed only when a server verifies signatures, since signing is slow. */
export async function payFor(offer: Offer, isSigned: boolean): Promise<string> {
  const nowSecs = Math.floor(Date.now() / 1_000);
  const authorization = {
    from,
    to: offer.payTo,
    value: offer.amount,
    validAfter: String(nowSecs - 600),
    validBefore: String(nowSecs + offer.maxTimeoutSeconds),
    nonce: `0x${randomBytes(32).toString('hex')}`,
  };
  const signature = isSigned ? await sign(authorization) : `0x${randomBytes(65).toString('hex')}`;
  const payment = { x402Version: 2, accepted: offer, payload: { signature, authorization } };
  return Buffer.from(JSON.stringify(payment)).toString('base64');
}

function sign(
  authorization: Readonly<Record<'to' | 'value' | 'validAfter' | 'validBefore' | 'nonce', string>>,
) {
  return payer.signTypedData({
    domain: { ...terms.eip712, chainId: terms.chainId, verifyingContract: terms.asset },
    types: {
      TransferWithAuthorization: [
        { name: 'from', type: 'address' },
        { name: 'to', type: 'address' },
        { name: 'value', type: 'uint256' },
        { name: 'validAfter', type: 'uint256' },
        { name: 'validBefore', type: 'uint256' },
        { name: 'nonce', type: 'bytes32' },
      ],
    },
    primaryType: 'TransferWithAuthorization',
    message: {
      from: payer.address,
      to: authorization.to as `0x${string}`,
      value: BigInt(authorization.value),
      validAfter: BigInt(authorization.validAfter),
      validBefore: BigInt(authorization.validBefore),
      nonce: authorization.nonce as `0x${string}`,
    },
  });
}
