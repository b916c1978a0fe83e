import { toFunctionSelector } from 'viem/utils';
import { z } from 'zod';
import { meanTick, rateOfTick } from '../../rules/rates/tick-price.ts';
import type { SourceAnswer } from '../../../base/values/round.ts';
import type { Address, Hex } from '../../../base/values/primitives.ts';
import type { UniswapRateSource } from '../../../base/values/token.ts';
import { uintWord, outlinedCall } from '../../../base/peers/rpc/eth-call.ts';
import { bytes32, quantity } from '../../../base/peers/rpc/rpc-values.ts';
import { contractReader, type ContractReader, signed } from './contract-reader.ts';
import { beyondSecs, problem, type Read } from './source-answer.ts';

const [token0, token1, decimals] = ['token0()', 'token1()', 'decimals()'].map(toFunctionSelector) as [
  Hex,
  Hex,
  Hex,
];
const observe = toFunctionSelector('observe(uint32[])');
const maxDecimals = 36n;

const latestBlock = outlinedCall(
  'eth_getBlockByNumber',
  ['latest', false],
  z.object({ hash: bytes32, timestamp: quantity.refine((secs) => secs < beyondSecs) }),
);

/**
 * Asks a pool for its mean price over a window that ends at the chain's newest block; the time is that of the block, so that a node
 * which follows its chain no more is noticed. Never rejects.
 */
export async function askUniswapRate(source: UniswapRateSource, timeoutMs: number): Promise<SourceAnswer> {
  const reader = contractReader(source, timeoutMs);
  try {
    const chain = await reader.checkChain();
    return chain.kind === 'problem' ? chain : await readPool(reader, source);
  } finally {
    await reader.close();
  }
}

async function readPool(reader: ContractReader, source: UniswapRateSource): Promise<SourceAnswer> {
  const { contract, nativeToken, windowSecs } = source;
  const [block, first, second] = await Promise.all([
    reader.call(latestBlock),
    readAddress(reader, contract, token0),
    readAddress(reader, contract, token1),
  ]);
  if (block.kind === 'problem') return block;
  if (first.kind === 'problem') return first;
  if (second.kind === 'problem') return second;
  // a pool of other tokens has another price
  if ((first.value === nativeToken) === (second.value === nativeToken)) return problem('malformed');
  const [decimals0, decimals1, ticks] = await Promise.all([
    readDecimals(reader, first.value),
    readDecimals(reader, second.value),
    readTicks(reader, source, block.value.hash),
  ]);
  if (decimals0.kind === 'problem') return decimals0;
  if (decimals1.kind === 'problem') return decimals1;
  if (ticks.kind === 'problem') return ticks;
  const rate = rateOfTick(meanTick(...ticks.value, windowSecs), {
    decimals0: decimals0.value,
    decimals1: decimals1.value,
    isNative0: first.value === nativeToken,
  });
  return rate ? { kind: 'rate', rate, observedAtSecs: Number(block.value.timestamp) } : problem('malformed');
}

async function readAddress(reader: ContractReader, contract: Address, getter: Hex): Promise<Read<Address>> {
  const read = await reader.words(contract, getter, 1);
  if (read.kind === 'problem') return read;
  const digits = (read.value[0] ?? 0n).toString(16).padStart(40, '0');
  return digits.length === 40 ? { kind: 'read', value: `0x${digits}` } : problem('malformed');
}

async function readDecimals(reader: ContractReader, token: Address): Promise<Read<number>> {
  const read = await reader.words(token, decimals, 1);
  if (read.kind === 'problem') return read;
  const [word = maxDecimals + 1n] = read.value;
  return word <= maxDecimals ? { kind: 'read', value: Number(word) } : problem('malformed');
}

/** The sums of ticks at the window's begin and end. */
async function readTicks(
  reader: ContractReader,
  { contract, windowSecs }: UniswapRateSource,
  blockHash: Hex,
): Promise<Read<readonly [bigint, bigint]>> {
  const words = [uintWord(32), uintWord(2), uintWord(windowSecs), uintWord(0)].map((word) => word.slice(2));
  // two arrays of two: their offsets, the sums of ticks, and the sums of seconds per liquidity
  const at = { blockHash, requireCanonical: true } as const;
  const read = await reader.words(contract, `${observe}${words.join('')}`, 8, at);
  if (read.kind === 'problem') return read;
  const [ticksAt, , length, before = 0n, after = 0n] = read.value;
  if (ticksAt !== 64n || length !== 2n) return problem('malformed');
  return { kind: 'read', value: [signed(before), signed(after)] };
}
