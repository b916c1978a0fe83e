import { concatBytes, numberToBytes, stringToBytes } from 'viem/utils';
import { keccak256 } from './keccak.ts';
import type { Address } from './primitives.ts';

/** The four fields of EIP-712 domains that x402 signs for. */
export interface Eip712Domain {
  readonly name: string;
  readonly version: string;
  readonly chainId: number;
  readonly contract: Address;
}

const hashOf = (text: string): Uint8Array => keccak256(stringToBytes(text));
const word = (value: bigint | number): Uint8Array => numberToBytes(value, { size: 32 });

const domainType = hashOf(
  'EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)',
);

/** What a signature for a contract includes of it: 32 bytes. Contracts that follow the standard return it as `DOMAIN_SEPARATOR()`. */
export function domainSeparator({ name, version, chainId, contract }: Eip712Domain): Uint8Array {
  return keccak256(
    concatBytes([domainType, hashOf(name), hashOf(version), word(chainId), word(BigInt(contract))]),
  );
}
