import { randomBytes } from 'node:crypto';
import { createWalletClient, encodeFunctionData, http, publicActions } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { devnetKeys } from '../../src/devnet/accounts.ts';
import { exactPermit2Proxy, permit2Contract, testToken } from '../../src/devnet/contracts.ts';
import type { ContractCall } from '../../src/devnet/deploy.ts';
import { approvePermit2 } from '../../src/devnet/token.ts';
import type { TestChain } from './devnet.ts';
import type { Caip2, Hex } from '../../src/base/values/primitives.ts';
import { permit2TypedData } from '../../src/payments/rules/schemes/permit2/permit2.ts';
import {
  exactProxyAddress,
  nonceBit,
  permit2Address,
} from '../../src/payments/rules/schemes/permit2/signature-transfer.ts';
import type { Answer, GatewayClient } from './gateway.ts';
import { isUpto, signUpto } from './upto.ts';
import { header, type Offer, offerOf, payer, type Payment, signOffer } from './payer.ts';

/** A chain where Permit2 moves the devnet payer's EURC, and what makes a gateway accept it so. */
export async function withEuroByPermit2({ chain, secondToken }: Pick<TestChain, 'chain' | 'secondToken'>) {
  await approvePermit2(chain, secondToken, devnetKeys.payer);
  return { change: euroByPermit2 };
}

/** In a configuration of tests, EURC is paid with by Permit2: it takes EIP-3009 transfers as well. */
export const euroByPermit2 = (text: string): string =>
  text.replace('eip712_name = "Euro Coin"', 'transfer_method = "permit2"\neip712_name = "Euro Coin"');

const stranger = privateKeyToAccount(devnetKeys.spare);

export interface PermitOptions {
  readonly account?: typeof payer;
  readonly nonce?: Hex;
  readonly validBefore?: bigint;
  /** Atoms; left out, the offered ones. */
  readonly amount?: bigint;
}

/** A payment by Permit2 of the offer that takes it. */
export async function signPermit(offer: Offer, { account = payer, ...options }: PermitOptions = {}) {
  const accepted = offer.accepts.find(({ extra }) => extra['assetTransferMethod'] === 'permit2');
  if (!accepted) throw new Error('no such offer');
  const {
    nonce = `0x${randomBytes(32).toString('hex')}`,
    validBefore = BigInt(Math.floor(Date.now() / 1_000) + accepted.maxTimeoutSeconds),
    amount = BigInt(accepted.amount),
  } = options;
  const typed = permit2TypedData({
    network: accepted.network as Caip2,
    asset: accepted.asset,
    payTo: accepted.payTo,
    amount,
    validAfter: 0n,
    validBefore,
    nonce,
  });
  const { permitted, spender, deadline, witness } = typed.message;
  return {
    x402Version: 2,
    accepted: { ...accepted },
    payload: {
      signature: await account.signTypedData(typed),
      permit2Authorization: {
        permitted: { token: permitted.token, amount: String(permitted.amount) },
        from: account.address,
        spender,
        nonce: String(typed.message.nonce),
        deadline: String(deadline),
        witness: { to: witness.to, validAfter: '0' },
      },
    },
  };
}

export type Permit = Awaited<ReturnType<typeof signPermit>>;

/** A payment of the option of an offer, in its scheme and transfer method. */
export function signOption(
  offer: Offer,
  option: number,
  { validBefore, amount, nonce, account = payer }: PermitOptions = {},
): Promise<Payment | Permit> {
  const accepted = offer.accepts[option];
  if (accepted && isUpto({ accepted }))
    return signUpto(offer, {
      option,
      account,
      ...(nonce && { nonce }),
      signed: { ...(validBefore && { validBefore }), ...(amount && { amount }) },
    });
  if (accepted?.extra['assetTransferMethod'] === 'permit2')
    return signPermit(offer, {
      account,
      ...(nonce && { nonce }),
      ...(validBefore && { validBefore }),
      ...(amount && { amount }),
    });
  const signed = {
    ...(nonce && { nonce }),
    ...(validBefore && { validBefore: String(validBefore) }),
    ...(amount && { value: String(amount) }),
  };
  return signOffer(offer, { account, option, signed });
}

/** Asks for a quote and pays with an option of it, in that option's transfer method. */
export async function payByOption(
  gateway: GatewayClient,
  path: string,
  body: string,
  option: number,
): Promise<Answer> {
  const payment = await signOption(offerOf(await gateway.post(path, { body })), option);
  return gateway.post(path, { body, headers: header(payment) });
}

export function isPermit(payment: Payment | Permit): payment is Permit {
  return 'permit2Authorization' in payment.payload;
}

/** What a payer signed, in either transfer method. */
export function signedTransfer({ payload }: Payment | Permit) {
  if ('authorization' in payload) {
    const { from, nonce, value } = payload.authorization;
    return { from, nonce: nonce as Hex, value: BigInt(value) };
  }
  const { from, nonce, permitted } = payload.permit2Authorization;
  return { from, nonce: permitNonce(nonce), value: BigInt(permitted.amount) };
}

/** The 32 bytes of a nonce that a payload has as a decimal number. */
export function permitNonce(nonce: string | bigint): Hex {
  return `0x${BigInt(nonce).toString(16).padStart(64, '0')}`;
}

/** The call by which any account lands a signed payment, in either transfer method. */
export function landingCall({ accepted, payload }: Payment | Permit): ContractCall {
  if ('authorization' in payload) {
    const { from, to, value, validAfter, validBefore, nonce } = payload.authorization;
    const numbers = [BigInt(value), BigInt(validAfter), BigInt(validBefore)];
    const args = [from, to, ...numbers, nonce, payload.signature];
    return { address: accepted.asset, artifact: testToken, functionName: 'transferWithAuthorization', args };
  }
  const { permitted, from, nonce, deadline, witness } = payload.permit2Authorization;
  const args = [
    {
      permitted: { token: permitted.token, amount: BigInt(permitted.amount) },
      nonce: BigInt(nonce),
      deadline: BigInt(deadline),
    },
    from,
    { to: witness.to, validAfter: BigInt(witness.validAfter) },
    payload.signature,
  ];
  return { address: exactProxyAddress, artifact: exactPermit2Proxy, functionName: 'settle', args };
}

/** Lands a signed permit without a facilitator, as any account may. */
export function landPermit(rpcUrl: string, permit: Permit): Promise<Hex> {
  const { address, artifact, functionName, args } = landingCall(permit);
  return send(rpcUrl, address, encodeFunctionData({ abi: artifact.abi, functionName, args }), stranger);
}

/** Invalidates a permit's nonce, as its payer may. */
export function cancelPermit(rpcUrl: string, { payload }: Permit, account = payer): Promise<Hex> {
  const { word, mask } = nonceBit(`0x${BigInt(payload.permit2Authorization.nonce).toString(16)}`);
  const { abi } = permit2Contract;
  const data = encodeFunctionData({ abi, functionName: 'invalidateUnorderedNonces', args: [word, mask] });
  return send(rpcUrl, permit2Address, data, account);
}

async function send(rpcUrl: string, to: Hex, data: Hex, account: typeof payer): Promise<Hex> {
  const transport = http(rpcUrl);
  const client = createWalletClient({ account, transport, pollingInterval: 20 }).extend(publicActions);
  const hash = await client.sendTransaction({ to, data, chain: null });
  const { status } = await client.waitForTransactionReceipt({ hash });
  if (status !== 'success') throw new Error(`${hash} reverted`);
  return hash;
}
