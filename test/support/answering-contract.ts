import type { Hex } from 'viem';
import { keccak256, numberToHex, size } from 'viem/utils';
import type { Address } from '../../src/base/values/primitives.ts';
import { deployContract } from './contracts.ts';

/** What a contract returns for exactly this call data; it reverts for all other. */
export type Answers = Readonly<Record<Hex, Hex>>;

/** Deploys a contract that answers each call of the table with set bytes: an oracle's part, honest or not. */
export function deployAnswers(rpcUrl: string, answers: Answers): Promise<Address> {
  return deployCode(rpcUrl, codeOf(answers));
}

/** Deploys a contract with this code. */
export function deployCode(rpcUrl: string, code: Hex): Promise<Address> {
  // copies the code behind itself and returns it: PUSH2 size, PUSH2 offset, PUSH0, CODECOPY, PUSH2 size, PUSH0, RETURN
  const init = `61${word2(size(code))}61000d5f3961${word2(size(code))}5ff3`;
  return deployContract(rpcUrl, { abi: [], bytecode: `0x${init}${code.slice(2)}` }, []);
}

/** 32 bytes of a whole number; a negative one as its two's complement. */
function abiWord(value: bigint | Hex): string {
  return BigInt.asUintN(256, BigInt(value)).toString(16).padStart(64, '0');
}

export function abiWords(...values: readonly (bigint | Hex)[]): Hex {
  return `0x${values.map(abiWord).join('')}`;
}

/** A jump table from the hash of the call data to the bytes to return. */
function codeOf(answers: Answers): Hex {
  const entries = Object.entries(answers) as [Hex, Hex][];
  // CALLDATASIZE PUSH0 PUSH0 CALLDATACOPY CALLDATASIZE PUSH0 KECCAK256
  const hashing = '365f5f37365f20';
  const [branchBytes, returnBytes] = [39, 14];
  const returnsAt = hashing.length / 2 + entries.length * branchBytes + 3;
  const dataAt = returnsAt + entries.length * returnBytes;
  let [branches, returns, data] = ['', '', ''];
  for (const [index, [asked, answer]] of entries.entries()) {
    // DUP1 PUSH32 hash EQ PUSH2 target JUMPI
    branches += `807f${keccak256(asked).slice(2)}1461${word2(returnsAt + index * returnBytes)}57`;
    // JUMPDEST PUSH2 size PUSH2 offset PUSH0 CODECOPY PUSH2 size PUSH0 RETURN
    const bytes = word2(size(answer));
    returns += `5b61${bytes}61${word2(dataAt + data.length / 2)}5f3961${bytes}5ff3`;
    data += answer.slice(2);
  }
  // PUSH0 PUSH0 REVERT
  return `0x${hashing}${branches}5f5ffd${returns}${data}`;
}

function word2(value: number): string {
  return numberToHex(value, { size: 2 }).slice(2);
}
