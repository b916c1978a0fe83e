import { randomBytes } from 'node:crypto';
import secp256k1 from 'secp256k1';
import { bytesToHex, hashTypedData, hexToBytes } from 'viem/utils';
import { keccak256 } from '../src/base/values/keccak.ts';
import { devnetAddress, devnetKeys } from '../src/devnet/accounts.ts';
import { permit2TypedData } from '../src/payments/rules/schemes/permit2/permit2.ts';
import { authorizationDigest } from '../src/payments/rules/schemes/eip3009/authorization-digest.ts';
import { terms } from './terms.ts';

/** One settlement option of a version 2 offer. */
export interface Offer {
  readonly payTo: string;
  readonly amount: string;
  readonly maxTimeoutSeconds: number;
  readonly extra?: { readonly assetTransferMethod?: string };
}

/** An account that pays: its address in lower case and its key. */
export interface Wallet {
  readonly address: `0x${string}`;
  readonly key: Uint8Array;
}

const payer: Wallet = {
  address: devnetAddress('payer'),
  key: Buffer.from(devnetKeys.payer.slice(2), 'hex'),
};

export function newWallet(): Wallet {
  const key = randomBytes(32);
  const publicKey = secp256k1.publicKeyCreate(key, false);
  return { address: bytesToHex(keccak256(publicKey.subarray(1)).subarray(12)), key };
}

export function firstOffer(paymentRequired: string): Offer {
  const { accepts } = JSON.parse(Buffer.from(paymentRequired, 'base64').toString()) as {
    readonly accepts: readonly Offer[];
  };
  const offer = accepts[0];
  if (!offer) throw new Error('a 402 that offers nothing');
  return offer;
}

/** A payment header for this offer, with a fresh nonce. Signed only when a server verifies signatures. */
export function payFor(offer: Offer, isSigned: boolean, wallet = payer): string {
  const unsigned = `0x${randomBytes(65).toString('hex')}`;
  const authorization = authorizationOf(wallet, offer.amount);
  const payload =
    offer.extra?.assetTransferMethod === 'permit2'
      ? permitOf(wallet, authorization, isSigned ? undefined : unsigned)
      : { signature: isSigned ? sign(wallet, authorization) : unsigned, authorization };
  const payment = { x402Version: 2, accepted: offer, payload };
  return Buffer.from(JSON.stringify(payment)).toString('base64');
}

export function authorizationOf({ address }: Wallet, amount: string) {
  const nowSecs = Math.floor(Date.now() / 1_000);
  return {
    from: address,
    to: terms.payTo,
    value: amount,
    validAfter: String(nowSecs - 600),
    validBefore: String(nowSecs + terms.maxTimeoutSecs),
    nonce: `0x${randomBytes(32).toString('hex')}` as const,
  };
}

export function sign({ address, key }: Wallet, authorization: ReturnType<typeof authorizationOf>): string {
  const { value, validAfter, validBefore, nonce } = authorization;
  const digest = authorizationDigest({
    network: terms.network,
    asset: terms.asset,
    eip712Name: terms.eip712.name,
    eip712Version: terms.eip712.version,
    payer: address,
    payTo: terms.payTo,
    amount: BigInt(value),
    validAfter: BigInt(validAfter),
    validBefore: BigInt(validBefore),
    nonce,
    signature: '0x',
  });
  return signDigest(digest, key);
}

/** The same payment by Permit2. */
function permitOf(
  { address, key }: Wallet,
  { value, validBefore, nonce }: ReturnType<typeof authorizationOf>,
  signature: string | undefined,
) {
  const typed = permit2TypedData({
    network: terms.network,
    asset: terms.asset,
    payTo: terms.payTo,
    amount: BigInt(value),
    validAfter: 0n,
    validBefore: BigInt(validBefore),
    nonce,
  });
  const { permitted, spender, deadline, witness } = typed.message;
  return {
    signature: signature ?? signDigest(hexToBytes(hashTypedData(typed)), key),
    permit2Authorization: {
      permitted: { token: permitted.token, amount: value },
      from: address,
      spender,
      nonce: String(BigInt(nonce)),
      deadline: String(deadline),
      witness: { to: witness.to, validAfter: '0' },
    },
  };
}

function signDigest(digest: Uint8Array, key: Uint8Array): string {
  const { signature, recid } = secp256k1.ecdsaSign(digest, key);
  return `0x${Buffer.from(signature).toString('hex')}${(27 + recid).toString(16)}`;
}
