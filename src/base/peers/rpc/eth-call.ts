import { z } from 'zod';
import type { Address, Hex } from '../../values/primitives.ts';
import { RpcError, type RpcCall, type RpcUnavailable } from './json-rpc.ts';
import { longAnswer } from './answer-reader.ts';

/** The parameters of an `eth_call`. */
export interface ContractCall {
  readonly to: Address;
  /** Selector and encoded arguments. */
  readonly data: Hex;
  /** Default: the node's own limit. */
  readonly gas?: number;
}

/** Enough for an answer of one ABI word or an error. */
export const smallAnswerBytes = 64 * 1024;

/** A call whose answer is short. */
export function shortCall<T>(method: string, params: readonly unknown[], result: z.ZodType<T>): RpcCall<T> {
  return { method, params, result, maxResponseBytes: smallAnswerBytes };
}

/** A call whose answer others may make long: of it an outline is read. */
export function outlinedCall<T>(
  method: string,
  params: readonly unknown[],
  result: z.ZodType<T>,
): RpcCall<T> {
  return { method, params, result, reading: longAnswer };
}

export const abiFalse = `0x${'0'.repeat(64)}`;
export const abiTrue = `0x${'0'.repeat(63)}1`;

/** Whole bytes in hexadecimal, lower-cased. Any length: the answer's size is bounded already. */
export const hexBytes = z
  .string()
  .refine((text) => text.startsWith('0x') && text.length % 2 === 0 && !/[^0-9a-f]/i.test(text.slice(2)))
  .transform((text) => text.toLowerCase());

/** The block whose state a call reads: by its number in hex, or by its hash (EIP-1898), which names exactly one. */
export type BlockTag = 'latest' | Hex | { readonly blockHash: Hex; readonly requireCanonical: true };

/** `eth_call` at a block, by default the latest. */
export function ethCall<T>(
  { to, data, gas }: ContractCall,
  result: z.ZodType<T>,
  at: BlockTag = 'latest',
): RpcCall<T> {
  const limit = gas === undefined ? {} : { gas: `0x${gas.toString(16)}` };
  return shortCall('eth_call', [{ to, data, ...limit }, at], result);
}

/** Contracts have at most 24 KiB, on some chains ten times as much, and hexadecimal doubles it. */
const maxCodeBytes = 1024 * 1024;

/** The code of an account: `0x` if it has no code. */
export function codeCall(account: Address, at: BlockTag = 'latest'): RpcCall<string> {
  const params = [account, at];
  return { method: 'eth_getCode', params, result: hexBytes, maxResponseBytes: maxCodeBytes };
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
 * The same failures under codes that nodes also use for their own limits (-32000, -32003, -32603), identified by the message:
 * geth's, which most nodes repeat, and revm's names, as anvil and reth send them.
 */
const executionWords =
  /\brevert(?:ed)?\b|\bout of gas\b|intrinsic gas too (?:low|high)|invalid opcode|invalid jump|stack (?:under|over)flow|stack limit reached|write protection|gas uint64 overflow|return data out of bounds|\b(?:OutOfGas|\w*OOG|OpcodeNotFound|InvalidFEOpcode|InvalidJump|StackUnderflow|StackOverflow|OutOfOffset|NotActivated)\b/i;

/** Whether a node has pruned the state of the block that it was asked about, or lacks the block: each says so in its own words. */
export function isWithoutState({ cause, error }: RpcUnavailable): boolean {
  return cause === 'rpc_error' && !isExecutionFailure(error);
}

/** Whether the contract failed (revert, out of gas, invalid code), and not the node or the connection. */
export function isExecutionFailure(error: Error | undefined): boolean {
  if (!(error instanceof RpcError)) return false;
  return executionCodes.includes(error.code) || executionWords.test(error.reason);
}
