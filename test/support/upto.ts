import { randomBytes } from 'node:crypto';
import { createWalletClient, encodeFunctionData, http, publicActions } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import type { Address, Caip2, Hex } from '../../src/base/values/primitives.ts';
import { devnetKeys } from '../../src/devnet/accounts.ts';
import { uptoPermit2Proxy } from '../../src/devnet/contracts.ts';
import { uptoTypedData } from '../../src/payments/rules/schemes/permit2/upto.ts';
import { uptoProxyAddress } from '../../src/payments/rules/schemes/permit2/signature-transfer.ts';
import { type Offer, payer } from './payer.ts';

export interface UptoOptions {
  readonly account?: typeof payer;
  readonly nonce?: Hex;
  /** Which of the offers; left out, the first that takes it. */
  readonly option?: number;
  /** Fields that are signed in place of the offered ones. */
  readonly signed?: {
    readonly amount?: bigint;
    readonly payTo?: Address;
    readonly submitter?: Address;
    readonly validBefore?: bigint;
  };
}

/** A payment by `upto` of an offer that takes it. */
export async function signUpto(offer: Offer, { account = payer, ...options }: UptoOptions = {}) {
  const accepted = offer.accepts.find(
    ({ scheme }, index) => scheme === 'upto' && (options.option ?? index) === index,
  );
  if (!accepted) throw new Error('no such offer');
  const { nonce = `0x${randomBytes(32).toString('hex')}`, signed = {} } = options;
  const typed = uptoTypedData({
    network: accepted.network as Caip2,
    asset: accepted.asset,
    payTo: accepted.payTo,
    amount: BigInt(accepted.amount),
    submitter: accepted.extra['facilitatorAddress'] as Address,
    validAfter: 0n,
    validBefore: BigInt(Math.floor(Date.now() / 1_000) + accepted.maxTimeoutSeconds),
    nonce,
    ...signed,
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
        witness: { to: witness.to, facilitator: witness.facilitator, validAfter: '0' },
      },
    },
  };
}

/** Whether a payment is of at most the signed amount. */
export function isUpto({ accepted }: { readonly accepted: { readonly scheme: string } }): boolean {
  return accepted.scheme === 'upto';
}

export type UptoPayment = Awaited<ReturnType<typeof signUpto>>;

/** Moves this many atoms of a signed payment, as only its facilitator may. */
export async function moveUpto(
  rpcUrl: string,
  { payload }: UptoPayment,
  atoms: bigint,
  key: Hex = devnetKeys.facilitator,
): Promise<Hex> {
  const { permitted, from, nonce, deadline, witness } = payload.permit2Authorization;
  const permit = {
    permitted: { token: permitted.token, amount: BigInt(permitted.amount) },
    nonce: BigInt(nonce),
    deadline: BigInt(deadline),
  };
  const named = { to: witness.to, facilitator: witness.facilitator, validAfter: 0n };
  const { abi } = uptoPermit2Proxy;
  const args = [permit, atoms, from, named, payload.signature];
  const data = encodeFunctionData({ abi, functionName: 'settle', args });
  const transport = http(rpcUrl);
  const account = privateKeyToAccount(key);
  const client = createWalletClient({ account, transport, pollingInterval: 20 }).extend(publicActions);
  const hash = await client.sendTransaction({ to: uptoProxyAddress, data, chain: null });
  const { status } = await client.waitForTransactionReceipt({ hash });
  if (status !== 'success') throw new Error(`${hash} reverted`);
  return hash;
}
