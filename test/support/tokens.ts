import { createWalletClient, type Hex, http, publicActions } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { testToken } from '../../src/devnet/contracts.ts';
import type { Address } from '../../src/domain/primitives.ts';

/** Asks the node itself; throws what it answers with an error. */
export async function askNode(rpcUrl: string, method: string, params: readonly unknown[]): Promise<unknown> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  const headers = { 'content-type': 'application/json' };
  const answer = await (await fetch(rpcUrl, { method: 'POST', headers, body })).json();
  const { result, error } = answer as { result?: unknown; error?: { message: string } };
  if (error) throw new Error(error.message);
  return result;
}

/** Sends plain transfers of a token from one account, one after the other in as few blocks as the chain makes. */
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
