import { toFunctionSelector } from 'viem/utils';
import type { Address, Hex } from '../../../base/values/primitives.ts';
import { type BlockTag, ethCall, hexBytes, shortCall, codeCall } from '../../../base/peers/rpc/eth-call.ts';
import type { RpcAnswer } from '../../../base/peers/rpc/json-rpc.ts';
import type { Ask } from './blocks.ts';
import { safeQuantity } from '../../../base/peers/rpc/rpc-values.ts';

/** Of a Safe: the number of its transactions, which is not that of its account. */
const nonceSelector = toFunctionSelector('nonce()');
const nonceWord = hexBytes
  .refine((text) => text.length === 66 && BigInt(text) <= BigInt(Number.MAX_SAFE_INTEGER))
  .transform((text) => Number(BigInt(text)));
/** An account whose key signs for it and that lends its code from a contract (EIP-7702). */
const delegation = '0xef0100';

/**
 * How many nonces an account has used up to exactly this block: those of a Safe by its `nonce()`, of an account with a key those of its
 * transactions. Unavailable for any other contract, and if the node does not have that block as canonical.
 */
export async function readSpentNonces(ask: Ask, sender: Address, blockHash: Hex): Promise<RpcAnswer<number>> {
  const at: BlockTag = { blockHash, requireCanonical: true };
  const code = await ask(codeCall(sender, at));
  if (code.kind === 'unavailable') return code;
  if (code.value !== '0x' && !code.value.startsWith(delegation))
    return ask(ethCall({ to: sender, data: nonceSelector }, nonceWord, at));
  return ask(shortCall('eth_getTransactionCount', [sender, at], safeQuantity));
}
