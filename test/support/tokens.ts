import { createWalletClient, encodeFunctionData, type Hex, http, publicActions } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { multicall3Address } from '../../src/devnet/chain.ts';
import { multicall3, testToken } from '../../src/devnet/contracts.ts';
import type { Address } from '../../src/base/values/primitives.ts';

/** Calls the node directly; throws the node's error. */
export async function askNode(rpcUrl: string, method: string, params: readonly unknown[]): Promise<unknown> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  const headers = { 'content-type': 'application/json' };
  const answer = await (await fetch(rpcUrl, { method: 'POST', headers, body })).json();
  const { result, error } = answer as { result?: unknown; error?: { message: string } };
  if (error) throw new Error(error.message);
  return result;
}

/** Sends plain token transfers from one account, one after the other, in as few blocks as possible. */
export async function sendTokens(
  rpcUrl: string,
  privateKey: Hex,
  asset: Address,
  sent: readonly { readonly to: Address; readonly atoms: bigint }[],
): Promise<Hex[]> {
  const account = privateKeyToAccount(privateKey);
  const transport = http(rpcUrl);
  const client = createWalletClient({ account, transport, pollingInterval: 20 }).extend(publicActions);
  const first = await client.getTransactionCount({ address: account.address, blockTag: 'pending' });
  const hashes: Hex[] = [];
  for (const [index, { to, atoms }] of sent.entries())
    hashes.push(
      await client.writeContract({
        address: asset,
        abi: testToken.abi,
        functionName: 'transfer',
        args: [to, atoms],
        chain: null,
        nonce: first + index,
        gas: 100_000n,
      }),
    );
  const last = hashes.at(-1);
  if (last === undefined) return [];
  const { status } = await client.waitForTransactionReceipt({ hash: last });
  if (status !== 'success') throw new Error(`the transfer ${last} reverted`);
  return hashes;
}

/** Mints dust: one atom per transfer, 500 transfers per transaction. */
export async function strewDust(
  rpcUrl: string,
  privateKey: Hex,
  asset: Address,
  to: Address,
  transfers: number,
): Promise<void> {
  const account = privateKeyToAccount(privateKey);
  const transport = http(rpcUrl);
  const client = createWalletClient({ account, transport, pollingInterval: 20 }).extend(publicActions);
  const callData = encodeFunctionData({ abi: testToken.abi, functionName: 'mint', args: [to, 1n] });
  for (let left = transfers; left > 0; left -= 500) {
    const calls = Array.from({ length: Math.min(left, 500) }, () => ({
      target: asset,
      allowFailure: false,
      callData,
    }));
    const hash = await client.writeContract({
      address: multicall3Address,
      abi: multicall3.abi,
      functionName: 'aggregate3',
      args: [calls],
      chain: null,
    });
    const { status } = await client.waitForTransactionReceipt({ hash });
    if (status !== 'success') throw new Error(`the dust of ${hash} reverted`);
  }
}
