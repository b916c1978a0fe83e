import { type Rpc, type RpcAnswer, type RpcCall, unavailable } from './json-rpc.ts';
import { quantity } from './rpc-values.ts';
import { shortCall } from './eth-call.ts';

export const chainIdCall = shortCall('eth_chainId', [], quantity);

/** Calls an RPC only once its `eth_chainId` has matched: answers of another chain's node are `wrong_chain`. */
export function askRightChain(
  rpc: Rpc,
  chainId: number,
): <T>(call: RpcCall<T>, timeoutMs: number) => Promise<RpcAnswer<T>> {
  let isRightChain = false;
  return async (call, timeoutMs) => {
    if (!isRightChain) {
      const id = await rpc.call(chainIdCall, timeoutMs);
      if (id.kind === 'unavailable') return id;
      if (id.value !== BigInt(chainId)) return unavailable('wrong_chain');
      isRightChain = true;
    }
    return rpc.call(call, timeoutMs);
  };
}
