import { toFunctionSelector } from 'viem/utils';
import type { Eip712Domain } from '../../values/eip712-domain.ts';
import type { Address, Hex } from '../../values/primitives.ts';
import { chainIdCall } from './chain-id.ts';
import { codeCall, ethCall, hexBytes, isExecutionFailure } from './eth-call.ts';
import type { RpcCall } from './json-rpc.ts';
import type { RpcClients } from './rpc-clients.ts';

/** One thing that a chain was asked. */
export type Fact<T> =
  | { readonly kind: 'known'; readonly value: T }
  /** The contract does not say: it has no such function, or returns something else. Asking again would not help. */
  | { readonly kind: 'untold' }
  /** The RPC does not answer. Its causes are those of {@link RpcUnavailable}. */
  | { readonly kind: 'silent'; readonly cause: string };

/** Reads what contracts say about themselves, at the latest block. Never rejects; an invalid answer counts as silence. */
export interface ContractFacts {
  chainId(): Promise<Fact<bigint>>;
  hasCode(contract: Address): Promise<Fact<boolean>>;
  /** `decimals()`, which need not fit into a `uint8`: the contract is not trusted. */
  decimals(contract: Address): Promise<Fact<bigint>>;
  /** At most 256 bytes; also a `bytes32`, as old tokens return it. The text of a stranger: escape it before it is shown. */
  text(contract: Address, getter: 'name()' | 'symbol()' | 'version()'): Promise<Fact<string>>;
  /** `DOMAIN_SEPARATOR()`: 32 bytes. */
  domainSeparator(contract: Address): Promise<Fact<Hex>>;
  /** `eip712Domain()` of ERC-5267; not given if the domain has other fields than the usual four. */
  eip712Domain(contract: Address): Promise<Fact<DescribedDomain>>;
}

/** The chain id as the contract states it. */
type DescribedDomain = Omit<Eip712Domain, 'chainId'> & { readonly chainId: bigint };

/** The facts that one RPC knows. Every question ends before `endMs` of `performance.now()`. */
export function contractFacts(clients: RpcClients, rpcUrl: string, endMs: number): ContractFacts {
  const ask = async <T>(call: RpcCall<T>): Promise<Fact<T>> => {
    const answer = await clients.call(rpcUrl, call, Math.max(endMs - performance.now(), 1));
    if (answer.kind === 'answer') return { kind: 'known', value: answer.value };
    return isExecutionFailure(answer.error) ? { kind: 'untold' } : { kind: 'silent', cause: answer.cause };
  };
  /** Calls a function without arguments. */
  const get = async <T>(
    contract: Address,
    getter: keyof typeof selectors,
    read: (words: string) => T | undefined,
  ): Promise<Fact<T>> => {
    const answer = await ask(ethCall({ to: contract, data: selectors[getter] }, hexBytes));
    return map(answer, (bytes) => read(bytes.slice(2)));
  };
  return {
    chainId: () => ask(chainIdCall),
    hasCode: async (contract) => map(await ask(codeCall(contract)), (code) => code !== '0x'),
    decimals: (contract) => get(contract, 'decimals()', readNumber),
    text: (contract, getter) => get(contract, getter, readText),
    domainSeparator: (contract) => get(contract, 'DOMAIN_SEPARATOR()', readBytes32),
    eip712Domain: (contract) => get(contract, 'eip712Domain()', readDomain),
  };
}

const getters = [
  'decimals()',
  'name()',
  'symbol()',
  'version()',
  'DOMAIN_SEPARATOR()',
  'eip712Domain()',
] as const;
const selectors = Object.fromEntries(getters.map((getter) => [getter, toFunctionSelector(getter)])) as Record<
  (typeof getters)[number],
  Hex
>;

function map<T, U>(fact: Fact<T>, read: (value: T) => U | undefined): Fact<U> {
  if (fact.kind !== 'known') return fact;
  const value = read(fact.value);
  return value === undefined ? { kind: 'untold' } : { kind: 'known', value };
}

const wordDigits = 64;
const maxTextBytes = 256n;

/** The word at a position; undefined beyond the end. */
function wordAt(words: string, byte: bigint): string | undefined {
  if (byte * 2n + 64n > BigInt(words.length)) return undefined;
  return words.slice(Number(byte) * 2, Number(byte) * 2 + wordDigits);
}

function readNumber(words: string): bigint | undefined {
  return words.length === wordDigits ? BigInt(`0x${words}`) : undefined;
}

function readBytes32(words: string): Hex | undefined {
  return words.length === wordDigits ? `0x${words}` : undefined;
}

function readText(words: string): string | undefined {
  if (words.length === wordDigits) return utf8(words.replace(/(?:00)+$/, ''));
  return readTextOf(words, 0n);
}

/** A dynamic `string` whose offset is in the word at `byte`. */
function readTextOf(words: string, byte: bigint): string | undefined {
  const offset = numberAt(words, byte);
  const length = offset === undefined ? undefined : numberAt(words, offset);
  if (offset === undefined || length === undefined || length > maxTextBytes) return undefined;
  const from = Number(offset) * 2 + wordDigits;
  const digits = words.slice(from, from + Number(length) * 2);
  return digits.length === Number(length) * 2 ? utf8(digits) : undefined;
}

function numberAt(words: string, byte: bigint): bigint | undefined {
  const word = wordAt(words, byte);
  return word === undefined ? undefined : BigInt(`0x${word}`);
}

function utf8(digits: string): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(digits, 'hex'));
  } catch {
    return undefined;
  }
}

/** The bits of `fields` for name, version, chain id and contract. */
const usualFields = '0f';

function readDomain(words: string): DescribedDomain | undefined {
  const fields = wordAt(words, 0n);
  const [name, version] = [readTextOf(words, 32n), readTextOf(words, 64n)];
  const [chainId, contract] = [numberAt(words, 96n), wordAt(words, 128n)];
  if (!fields?.startsWith(usualFields) || name === undefined || version === undefined) return undefined;
  if (chainId === undefined || contract === undefined) return undefined;
  return { name, version, chainId, contract: `0x${contract.slice(24)}` };
}
