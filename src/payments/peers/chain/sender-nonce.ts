import { toFunctionSelector } from 'viem/utils';
import { z } from 'zod';
import type { Address, Hex } from '../../../base/values/primitives.ts';
import { longAnswer } from '../../../base/peers/rpc/answer-reader.ts';
import { type BlockTag, ethCall, hexBytes, smallAnswerBytes } from '../../../base/peers/rpc/eth-call.ts';
import type { RpcAnswer, RpcCall } from '../../../base/peers/rpc/json-rpc.ts';
import { address, bytes32, quantity } from '../../../base/peers/rpc/rpc-values.ts';
import type { Ask } from './blocks.ts';

/** Of a Safe: the number of its transactions, which is not that of its account. */
const nonceSelector = toFunctionSelector('nonce()');
const safeNumber = quantity.transform(Number).refine((number) => Number.isSafeInteger(number));
const nonceWord = hexBytes
  .refine((text) => text.length === 66 && BigInt(text) <= BigInt(Number.MAX_SAFE_INTEGER))
  .transform((text) => Number(BigInt(text)));
/** Contracts have at most 24 KiB, on some chains ten times as much, and hexadecimal doubles it. */
const maxCodeBytes = 1024 * 1024;
/** An account whose key signs for it and that lends its code from a contract (EIP-7702). */
const delegation = '0xef0100';

/**
 * How many nonces an account has used up to exactly this block: those of a Safe by its `nonce()`, of an account with a key those of its
 * transactions. Unavailable for any other contract, and where the node does not have that block as canonical.
 */
export async function readSpentNonces(ask: Ask, sender: Address, blockHash: Hex): Promise<RpcAnswer<number>> {
  const at: BlockTag = { blockHash, requireCanonical: true };
  const code = await ask({
    method: 'eth_getCode',
    params: [sender, at],
    result: hexBytes,
    maxResponseBytes: maxCodeBytes,
  });
  if (code.kind === 'unavailable') return code;
  if (code.value !== '0x' && !code.value.startsWith(delegation))
    return ask(ethCall({ to: sender, data: nonceSelector }, nonceWord, at));
  return ask({
    method: 'eth_getTransactionCount',
    params: [sender, at],
    result: safeNumber,
    maxResponseBytes: smallAnswerBytes,
  });
}

/** Who signed a transaction, and under which nonce. */
export interface SignedBy {
  readonly sender: Address;
  readonly nonce: number;
}

/** Undefined where the node does not know the transaction, mined or pending. */
export function signedByCall(transaction: Hex): RpcCall<SignedBy | undefined> {
  return {
    method: 'eth_getTransactionByHash',
    params: [transaction],
    result: z
      .object({ hash: bytes32, from: address, nonce: safeNumber })
      .refine(({ hash }) => hash === transaction)
      .transform(({ from, nonce }) => ({ sender: from, nonce }))
      .nullable()
      .transform((found) => found ?? undefined),
    reading: longAnswer,
  };
}
