import { randomBytes } from 'node:crypto';
import { createWalletClient, encodeFunctionData, http, publicActions } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { devnetKeys } from '../../src/devnet/accounts.ts';
import { exactPermit2Proxy, permit2Contract } from '../../src/devnet/contracts.ts';
import type { Caip2, Hex } from '../../src/base/values/primitives.ts';
import { permit2TypedData } from '../../src/payments/rules/schemes/permit2/permit2.ts';
import {
  exactProxyAddress,
  nonceBit,
  permit2Address,
} from '../../src/payments/rules/schemes/permit2/signature-transfer.ts';
import { type Offer, payer } from './payer.ts';

/** In a configuration of tests, EURC is paid with by Permit2: it takes EIP-3009 transfers as well. */
export const euroByPermit2 = (text: string): string =>
  text.replace('eip712_name = "Euro Coin"', 'transfer_method = "permit2"\neip712_name = "Euro Coin"');

const stranger = privateKeyToAccount(devnetKeys.spare);

export interface PermitOptions {
  readonly account?: typeof payer;
  readonly nonce?: Hex;
  readonly validBefore?: bigint;
}

/** A payment by Permit2 of the offer that takes it. */
export async function signPermit(offer: Offer, { account = payer, ...options }: PermitOptions = {}) {
  const accepted = offer.accepts.find(({ extra }) => extra['assetTransferMethod'] === 'permit2');
  if (!accepted) throw new Error('no such offer');
  const {
    nonce = `0x${randomBytes(32).toString('hex')}`,
    validBefore = BigInt(Math.floor(Date.now() / 1_000) + accepted.maxTimeoutSeconds),
  } = options;
  const typed = permit2TypedData({
    network: accepted.network as Caip2,
    asset: accepted.asset,
    payTo: accepted.payTo,
    amount: BigInt(accepted.amount),
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

/** Lands a signed permit without a facilitator, as any account may. */
export function landPermit(rpcUrl: string, { payload }: Permit): Promise<Hex> {
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
  const { abi } = exactPermit2Proxy;
  return send(rpcUrl, exactProxyAddress, encodeFunctionData({ abi, functionName: 'settle', args }), stranger);
}

/** Invalidates a permit's nonce, as its payer may. */
export function cancelPermit(rpcUrl: string, { payload }: Permit): Promise<Hex> {
  const { word, mask } = nonceBit(`0x${BigInt(payload.permit2Authorization.nonce).toString(16)}`);
  const { abi } = permit2Contract;
  const data = encodeFunctionData({ abi, functionName: 'invalidateUnorderedNonces', args: [word, mask] });
  return send(rpcUrl, permit2Address, data, payer);
}

async function send(rpcUrl: string, to: Hex, data: Hex, account: typeof payer): Promise<Hex> {
  const transport = http(rpcUrl);
  const client = createWalletClient({ account, transport, pollingInterval: 20 }).extend(publicActions);
  const hash = await client.sendTransaction({ to, data, chain: null });
  const { status } = await client.waitForTransactionReceipt({ hash });
  if (status !== 'success') throw new Error(`${hash} reverted`);
  return hash;
}
