import { createWalletClient, encodeFunctionData, http, publicActions } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { devnetKeys } from '../../../../src/devnet/accounts.ts';
import { type Chain, type ChainOptions, startChain } from '../../../../src/devnet/chain.ts';
import { testToken } from '../../../../src/devnet/contracts.ts';
import { deployTokens } from '../../../../src/devnet/token.ts';
import { readChainEvent } from '../../../../src/base/values/triggers/chain-event.ts';
import type { ChainTerms } from '../../../../src/base/values/triggers/trigger-terms.ts';
import type { Address, Hex } from '../../../../src/base/values/primitives.ts';
import { askNode } from '../../../support/tokens.ts';

export const transferEvent = 'event Transfer(address indexed from, address indexed to, uint256 value)';
export const receiver: Address = `0x${'cd'.repeat(20)}`;

/** Its own chain, with a token whose transfers are the events. */
export interface EventChain {
  readonly url: string;
  readonly token: Address;
  /** Mints this many atoms for each; one transaction each, which a block of its own includes. */
  mint(...atoms: readonly number[]): Promise<readonly Hex[]>;
  mine(blocks: number): Promise<void>;
  /** Replaces all blocks above a height. The signed transactions are included again, in the second of them. */
  reorg(above: bigint, again?: readonly Hex[]): Promise<void>;
  /** Signs a minting that is not sent, under the account's next nonce. */
  signMint(atoms: number): Promise<Hex>;
  send(signed: Hex): Promise<Hex>;
  height(): Promise<bigint>;
  stop(): Promise<void>;
}

export async function startEventChain(options: ChainOptions = {}): Promise<EventChain> {
  const chain: Chain = await startChain(options);
  const { token } = await deployTokens(chain);
  const account = privateKeyToAccount(devnetKeys.spare);
  const client = createWalletClient({ account, transport: http(chain.url), pollingInterval: 20 }).extend(
    publicActions,
  );
  const ask = (method: string, ...params: readonly unknown[]) => askNode(chain.url, method, params);
  const signMint = async (atoms: number): Promise<Hex> => {
    const data = encodeFunctionData({
      abi: testToken.abi,
      functionName: 'mint',
      args: [receiver, BigInt(atoms)],
    });
    const request = await client.prepareTransactionRequest({
      account,
      to: token,
      data,
      chain: null,
      gas: 200_000n,
    });
    return client.signTransaction({ ...request, chainId: chain.chainId } as never);
  };
  const send = async (serializedTransaction: Hex): Promise<Hex> => {
    const hash = await client.sendRawTransaction({ serializedTransaction });
    await client.waitForTransactionReceipt({ hash });
    return hash;
  };
  const height = (): Promise<bigint> => client.getBlockNumber({ cacheTime: 0 });
  return {
    url: chain.url,
    token,
    signMint,
    send,
    async mint(...atoms) {
      const hashes: Hex[] = [];
      for (const one of atoms) hashes.push(await send(await signMint(one)));
      return hashes;
    },
    mine: async (blocks) => void (await ask('anvil_mine', `0x${blocks.toString(16)}`)),
    async reorg(above, again = []) {
      // no block may come between the look at the height and the reorg
      await ask('evm_setIntervalMining', 0);
      const depth = Number((await height()) - above);
      await ask(
        'anvil_reorg',
        depth,
        again.map((raw) => [raw, 1]),
      );
      await ask('evm_setIntervalMining', 1);
    },
    height,
    stop: () => chain.stop(),
  };
}

/** The minted tokens of a chain. */
export function mintTerms(
  { url, token }: Pick<EventChain, 'url' | 'token'>,
  change: Partial<ChainTerms> = {},
): ChainTerms {
  const answer = readChainEvent(transferEvent, { to: receiver });
  if (answer.kind !== 'event') throw new Error(answer.text);
  return {
    network: 'eip155:84532',
    chainId: 84_532,
    rpcUrl: url,
    addresses: [token],
    event: answer.event,
    finality: 'final',
    startBlock: undefined,
    pollSecs: 1,
    behindAfterSecs: 3_600,
    ...change,
  };
}
