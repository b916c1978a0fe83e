import type { z } from 'zod';
import type { Address, Hex } from '../../../base/values/primitives.ts';
import { chainIdCall } from '../../../base/peers/rpc/chain-id.ts';
import { ethCall, hexBytes, type BlockTag } from '../../../base/peers/rpc/eth-call.ts';
import { createRpc, type RpcCall } from '../../../base/peers/rpc/json-rpc.ts';
import { problemOf, type Read, problem } from './source-answer.ts';

export type ContractReader = ReturnType<typeof contractReader>;

/** Reads contracts over one RPC, whose chain id is checked first. Every question ends by the same deadline. */
export function contractReader(
  { rpcUrl, chainId }: { readonly rpcUrl: string; readonly chainId: number },
  timeoutMs: number,
) {
  const rpc = createRpc(rpcUrl);
  const endMs = performance.now() + timeoutMs;
  const call = async <T>(asked: RpcCall<T>): Promise<Read<T>> => {
    const answer = await rpc.call(asked, Math.max(endMs - performance.now(), 1));
    return answer.kind === 'answer'
      ? { kind: 'read', value: answer.value }
      : { kind: 'problem', problem: problemOf(answer) };
  };
  return {
    call,
    /** Asks before anything else: the answers of another chain's node do not count. */
    async checkChain(): Promise<Read<true>> {
      const id = await call(chainIdCall);
      if (id.kind === 'problem') return id;
      return id.value === BigInt(chainId) ? { kind: 'read', value: true } : problem('wrong_chain');
    },
    /** The words of 32 bytes that a function returns; `malformed` if there are not exactly this many. */
    async words(
      contract: Address,
      data: Hex,
      count: number,
      at?: BlockTag,
    ): Promise<Read<readonly bigint[]>> {
      const schema: z.ZodType<string> = hexBytes;
      const answer = await call(ethCall({ to: contract, data }, schema, at));
      if (answer.kind === 'problem') return answer;
      const digits = answer.value.slice(2);
      if (digits.length !== count * 64) return problem('malformed');
      return { kind: 'read', value: (digits.match(/.{64}/g) ?? []).map((word) => BigInt(`0x${word}`)) };
    },
    close: (): Promise<void> => rpc.close(),
  };
}

export function signed(word: bigint): bigint {
  return BigInt.asIntN(256, word);
}
