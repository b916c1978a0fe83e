import { smallAnswerBytes } from './eth-call.ts';
import { type Rpc, type RpcAnswer, type RpcCall, unavailable } from './json-rpc.ts';
import { quantity } from './rpc-values.ts';

export const chainIdCall: RpcCall<bigint> = {
  method: 'eth_chainId',
  params: [],
  result: quantity,
  maxResponseBytes: smallAnswerBytes,
};

/** Nothing an RPC of another chain says is about ours: it is asked which it serves until it has told once. */
export function askRightChain(
  rpc: Rpc,
  chainId: number,
): <T>(asked: RpcCall<T>, timeoutMs: number) => Promise<RpcAnswer<T>> {
  let isRightChain = false;
  return async (asked, timeoutMs) => {
    if (!isRightChain) {
      const id = await rpc.call(chainIdCall, timeoutMs);
      if (id.kind === 'unavailable') return id;
      if (id.value !== BigInt(chainId)) return unavailable('wrong_chain');
      isRightChain = true;
    }
    return rpc.call(asked, timeoutMs);
  };
}
