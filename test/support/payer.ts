import { randomBytes } from 'node:crypto';
import type { Hex } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { devnetKeys } from '../../src/devnet/accounts.ts';
import type { Answer, GatewayClient } from './gateway.ts';

/** The parts of a version 2 offer that a payer needs. */
export interface Offer {
  readonly x402Version: number;
  readonly error: string;
  readonly resource: { readonly url: string };
  readonly accepts: readonly Requirement[];
  readonly extensions?: Readonly<Record<string, unknown>>;
}

interface Requirement {
  readonly scheme: string;
  readonly network: string;
  readonly amount: string;
  readonly asset: Hex;
  readonly payTo: Hex;
  readonly maxTimeoutSeconds: number;
  readonly extra: Readonly<Record<string, string>>;
}

export interface Authorization {
  from: string;
  to: string;
  value: string;
  validAfter: string;
  validBefore: string;
  nonce: string;
}

/** The typed data of EIP-3009. */
export const authorizationTypes = {
  TransferWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
} as const;

/** An account that signs payments. */
export const accountOf = (key: Hex) => privateKeyToAccount(key);

export const payer = accountOf(devnetKeys.payer);

export function offerOf(answer: Answer): Offer {
  const required = answer.headers.get('payment-required');
  if (required === null) throw new Error(`no PAYMENT-REQUIRED in a ${answer.status}: ${answer.text}`);
  return JSON.parse(Buffer.from(required, 'base64').toString('utf8')) as Offer;
}

export interface SignOptions {
  readonly account?: typeof payer;
  /** The settlement option to pay: 0 is USDC, 1 is EURC. */
  readonly option?: number;
  /** Fields that are signed in place of the offered ones. */
  readonly signed?: Partial<Authorization>;
  readonly nowSecs?: number;
}

/** A payment payload for an offer, correctly signed; fields of `signed` replace the offered ones. */
export async function signOffer(offer: Offer, options: SignOptions = {}) {
  const { account = payer, option = 0, signed = {}, nowSecs = Math.floor(Date.now() / 1_000) } = options;
  const accepted = offer.accepts[option];
  if (!accepted) throw new Error('no such offer');
  const authorization: Authorization = {
    from: account.address,
    to: accepted.payTo,
    value: accepted.amount,
    validAfter: String(nowSecs - 600),
    validBefore: String(nowSecs + accepted.maxTimeoutSeconds),
    nonce: `0x${randomBytes(32).toString('hex')}`,
    ...signed,
  };
  const signature = await account.signTypedData({
    domain: {
      name: accepted.extra['name'] ?? '',
      version: accepted.extra['version'] ?? '',
      chainId: Number(accepted.network.split(':')[1]),
      verifyingContract: accepted.asset,
    },
    types: authorizationTypes,
    primaryType: 'TransferWithAuthorization',
    message: {
      from: authorization.from as Hex,
      to: authorization.to as Hex,
      value: BigInt(authorization.value),
      validAfter: BigInt(authorization.validAfter),
      validBefore: BigInt(authorization.validBefore),
      nonce: authorization.nonce as Hex,
    },
  });
  return {
    x402Version: 2,
    accepted: { ...accepted },
    payload: { signature: signature as string, authorization },
  };
}

export type Payment = Awaited<ReturnType<typeof signOffer>>;

export function header(payment: unknown): Record<string, string> {
  return { 'payment-signature': Buffer.from(JSON.stringify(payment)).toString('base64') };
}

/** A payment of version 1. */
export function v1Header({ payload }: { readonly payload: unknown }): Record<string, string> {
  const payment = { x402Version: 1, scheme: 'exact', network: 'base-sepolia', payload };
  return { 'x-payment': Buffer.from(JSON.stringify(payment)).toString('base64') };
}

/** Asks for a quote and signs it. */
export async function quoteAndSign(
  gateway: GatewayClient,
  path: string,
  body: string,
  options: SignOptions = {},
) {
  const asked = await gateway.post(path, { body });
  return signOffer(offerOf(asked), options);
}

/** What an honest client does: ask, sign, pay. */
export async function payFor(
  gateway: GatewayClient,
  path: string,
  body = 'a body',
  options: SignOptions = {},
): Promise<Answer> {
  const payment = await quoteAndSign(gateway, path, body, options);
  return gateway.post(path, { body, headers: header(payment) });
}
