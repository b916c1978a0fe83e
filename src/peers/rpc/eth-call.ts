import { z } from 'zod';
import type { Address, Hex } from '../../domain/values/primitives.ts';
import { RpcError, type RpcCall } from './json-rpc.ts';

/** What `eth_call` asks a contract. */
export interface ContractCall {
  readonly to: Address;
  /** Selector and encoded arguments. */
  readonly data: Hex;
  /** The node's own limit where left out. */
  readonly gas?: number;
}

/** Answers that hold a word or an error. */
export const smallAnswerBytes = 64 * 1024;

export const abiFalse = `0x${'0'.repeat(64)}`;
export const abiTrue = `0x${'0'.repeat(63)}1`;

/** Whole bytes in hexadecimal, lower-cased. Any length: the answer's size is bounded already. */
export const hexBytes = z
  .string()
  .refine((text) => text.startsWith('0x') && text.length % 2 === 0 && !/[^0-9a-f]/i.test(text.slice(2)))
  .transform((text) => text.toLowerCase());

/** The block a call is made on top of; by its hash (EIP-1898) no other block can be meant. */
export type BlockTag = 'latest' | { readonly blockHash: Hex; readonly requireCanonical: true };

/** `eth_call` as of a block, the latest where left out. */
export function ethCall<T>(
  { to, data, gas }: ContractCall,
  result: z.ZodType<T>,
  at: BlockTag = 'latest',
): RpcCall<T> {
  const limit = gas === undefined ? {} : { gas: `0x${gas.toString(16)}` };
  return {
    method: 'eth_call',
    params: [{ to, data, ...limit }, at],
    result,
    maxResponseBytes: smallAnswerBytes,
  };
}

/** An address as a topic or an ABI word. */
export function addressWord(of: Address): Hex {
  return `0x${of.slice(2).padStart(64, '0')}`;
}

/** A whole number, not negative, as an ABI word. */
export function uintWord(of: number): Hex {
  return `0x${of.toString(16).padStart(64, '0')}`;
}

/** "execution reverted" of geth and anvil; "VM execution error" of Nethermind and OpenEthereum. */
const executionCodes: readonly number[] = [3, -32_015];
/**
 * The same failures under the codes nodes also use for limits of their own (-32000, -32003, -32603), so that only
 * the words tell: of geth, which most nodes repeat, and of revm's names, as anvil and reth give them.
 */
const executionWords =
  /\brevert(?:ed)?\b|\bout of gas\b|intrinsic gas too (?:low|high)|invalid opcode|invalid jump|stack (?:under|over)flow|stack limit reached|write protection|gas uint64 overflow|return data out of bounds|\b(?:OutOfGas|\w*OOG|OpcodeNotFound|InvalidFEOpcode|InvalidJump|StackUnderflow|StackOverflow|OutOfOffset|NotActivated)\b/i;

/** Whether the contract failed, and not the node or the way to it: it reverted, ran out of gas or into bad code. */
export function isExecutionFailure(error: Error | undefined): boolean {
  if (!(error instanceof RpcError)) return false;
  return executionCodes.includes(error.code) || executionWords.test(error.reason);
}
