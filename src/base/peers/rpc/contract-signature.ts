import { encodeAbiParameters, toFunctionSelector } from 'viem/utils';
import type { Address, Hex } from '../../values/primitives.ts';
import { codeCall, ethCall, hexBytes, isExecutionFailure, uintWord } from './eth-call.ts';
import { chainIdCall } from './chain-id.ts';
import { type RpcAnswer, type RpcCall, type RpcUnavailable, unavailable } from './json-rpc.ts';
import { createRpcClients } from './rpc-clients.ts';

export interface ContractSignature {
  readonly rpcUrl: string;
  /** Checked if it is given: the account may be another one on another chain. */
  readonly chainId?: number;
  readonly account: Address;
  /** The signed hash: 32 bytes. */
  readonly digest: Hex;
  /** Whole bytes; the caller limits their number. */
  readonly signature: Hex;
}

export type ContractSignatureAnswer =
  | {
      readonly kind: 'answer';
      readonly valid: boolean;
      /** False for an account without code: only its key can sign for it. */
      readonly isContract: boolean;
    }
  | RpcUnavailable;

export type WrappedSignatureAnswer = { readonly kind: 'answer'; readonly valid: boolean } | RpcUnavailable;

export interface ContractSignatureChecker {
  /**
   * Asks the account's contract (ERC-1271) at the latest block. A contract that reverts, runs out of gas or returns anything
   * but the magic value rejects the signature.
   * @throws TypeError for an invalid URL
   */
  isValidSignature(signature: ContractSignature): Promise<ContractSignatureAnswer>;
  /**
   * Runs the reference validator of ERC-6492 in one `eth_call` without a sender or an address: it calls the factory that a wrapped
   * signature names, then asks the contract that is at the account now. Nothing of it stays. A factory or contract that fails rejects the
   * signature; any other answer than yes or no is the node's fault. The node runs code that the client chose: the caller limits factories.
   * @throws TypeError for an invalid URL
   */
  isValidWrapped(signature: Omit<ContractSignature, 'chainId'>): Promise<WrappedSignatureAnswer>;
  /** Waits for running calls, then drops the connections. */
  close(): Promise<void>;
}

export interface ContractSignatureCheckerOptions {
  /** Of both calls together, each with one retry if the connection failed. */
  readonly timeoutMs?: number;
  /** Limit of a call: the caller chose the contract's code, and the node runs it for the gateway. */
  readonly gasCap?: number;
  /** The same of a call that also deploys the contract. */
  readonly deployingGasCap?: number;
  /** Most concurrent calls to one RPC URL. */
  readonly maxConcurrent?: number;
}

export function createContractSignatureChecker(
  options: ContractSignatureCheckerOptions = {},
): ContractSignatureChecker {
  const { timeoutMs = 3_000, gasCap = 500_000, deployingGasCap = 3_000_000, maxConcurrent = 64 } = options;
  const clients = createRpcClients({ maxConcurrent });
  return {
    async isValidSignature({ rpcUrl, chainId, account, digest, signature }) {
      const endMs = performance.now() + timeoutMs;
      if (chainId !== undefined) {
        const id = await clients.call(rpcUrl, chainIdCall, timeoutMs);
        if (id.kind === 'unavailable') return id;
        if (id.value !== BigInt(chainId)) return unavailable('wrong_chain');
      }
      const code = await clients.call(rpcUrl, codeCall(account), timeoutMs);
      if (code.kind === 'unavailable') return code;
      if (code.value === '0x') return { kind: 'answer', valid: false, isContract: false };
      const data = signatureInput(digest, signature);
      const call = ethCall({ to: account, data, gas: gasCap }, hexBytes);
      return judge(await clients.call(rpcUrl, call, Math.max(endMs - performance.now(), 1)));
    },
    async isValidWrapped({ rpcUrl, ...signature }) {
      const call = await validatorCall(signature, deployingGasCap);
      return judgeWrapped(await clients.call(rpcUrl, call, timeoutMs));
    },
    close: () => clients.close(),
  };
}

const selector = toFunctionSelector('isValidSignature(bytes32,bytes)');
/** The selector again, as a `bytes4` in its word. */
const magicWord = selector.padEnd(66, '0');

/** ABI: the digest, the offset of the bytes, their length, and the bytes padded to whole words. */
function signatureInput(digest: Hex, signature: Hex): Hex {
  const bytes = signature.slice(2);
  const filled = bytes.padEnd(Math.ceil(bytes.length / 64) * 64, '0');
  const words = [uintWord(64), uintWord(bytes.length / 2)].map((word) => word.slice(2));
  return `${selector}${digest.slice(2)}${words.join('')}${filled}`;
}

const validatorInput = [{ type: 'address' }, { type: 'bytes32' }, { type: 'bytes' }] as const;

/** A factory may revert with as much as its gas buys: what is long of it is passed over. */
const maxWrappedAnswerBytes = 8 * 1024 * 1024;

async function validatorCall(
  { account, digest, signature }: Pick<ContractSignature, 'account' | 'digest' | 'signature'>,
  gas: number,
): Promise<RpcCall<string>> {
  // few gateways are ever shown such a signature, and the start of each would wait for all of viem
  const { erc6492SignatureValidatorByteCode: validator } = await import('viem');
  const data = `${validator}${encodeAbiParameters(validatorInput, [account, digest, signature]).slice(2)}`;
  const params = [{ data, gas: `0x${gas.toString(16)}` }, 'latest'];
  return { method: 'eth_call', params, result: hexBytes, reading: { maxBytes: maxWrappedAnswerBytes } };
}

function judgeWrapped(answer: RpcAnswer<string>): WrappedSignatureAnswer {
  if (answer.kind === 'unavailable')
    return isExecutionFailure(answer.error) ? { kind: 'answer', valid: false } : answer;
  if (answer.value === '0x01' || answer.value === '0x00')
    return { kind: 'answer', valid: answer.value === '0x01' };
  // it did not run the code: an account that is called would answer so
  return unavailable('malformed');
}

function judge(answer: RpcAnswer<string>): ContractSignatureAnswer {
  if (answer.kind === 'answer') {
    return { kind: 'answer', valid: answer.value === magicWord, isContract: true };
  }
  if (isExecutionFailure(answer.error)) return { kind: 'answer', valid: false, isContract: true };
  return answer;
}
