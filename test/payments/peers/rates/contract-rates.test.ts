import { Decimal } from 'decimal.js';
import type { Hex } from 'viem';
import { toFunctionSelector } from 'viem/utils';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Chain, startChain } from '../../../../src/devnet/chain.ts';
import { judgeRound, type SourceAnswer } from '../../../../src/base/values/round.ts';
import type { Address } from '../../../../src/base/values/primitives.ts';
import { rateText } from '../../../../src/base/values/rate.ts';
import type {
  ChainlinkRateSource,
  RateSource,
  UniswapRateSource,
} from '../../../../src/base/values/token.ts';
import { askSource } from '../../../../src/payments/peers/rates/ask-source.ts';
import { askChainlinkRate } from '../../../../src/payments/peers/rates/chainlink-rate.ts';
import { askUniswapRate } from '../../../../src/payments/peers/rates/uniswap-rate.ts';
import { abiWords, deployAnswers } from '../../../support/answering-contract.ts';
import { startRateSource } from '../../../support/rate-source.ts';
import { soonMs } from '../../../support/time-limits.ts';
import { startRpcProxy } from '../../../support/rpc-proxy.ts';

let chain: Chain;
beforeAll(async () => {
  chain = await startChain({ port: 0 });
});
afterAll(() => chain?.stop());

const now = Math.floor(Date.now() / 1_000);
const beyondUint256 = 2n ** 256n;
const noContract: Address = `0x${'a5'.repeat(20)}`;

const shown = (answer: SourceAnswer): string =>
  answer.kind === 'rate' ? `${rateText(answer.rate)} at ${answer.observedAtSecs - now}` : answer.problem;

/** What a round of this one source makes of its answer. */
function judged(source: RateSource, said: SourceAnswer): string {
  const terms = { maxAgeSecs: 60, maxDeviationBps: 100, minSources: 1, bound: undefined };
  const round = judgeRound({ ...terms, sources: [source] }, [said], now);
  return round.kind === 'rate' ? rateText(round.rate) : (round.answers[0]?.problem ?? round.problem);
}

/** What `observe` returns: the sums of ticks at the begin and the end of the window, and those of liquidity. */
const sums = (before: bigint, after: bigint): Hex => abiWords(64n, 160n, 2n, before, after, 2n, 5n, 9n);

async function newestBlock(): Promise<object> {
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'eth_getBlockByNumber',
    params: ['latest', false],
  });
  const answer = await fetch(chain.url, {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json' },
  });
  return ((await answer.json()) as { result: object }).result;
}

const aggregatorAt = (contract: Address, more: Partial<ChainlinkRateSource> = {}) => ({
  name: 'aggregator',
  maxAgeSecs: 60,
  kind: 'chainlink' as const,
  chainId: chain.chainId,
  rpcUrl: chain.url,
  contract,
  inverse: false,
  sequencerFeed: undefined,
  sequencerGraceSecs: 3_600,
  ...more,
});

describe('an aggregator', () => {
  const latestRoundData = toFunctionSelector('latestRoundData()');
  const decimalsOf = toFunctionSelector('decimals()');

  interface RoundWords {
    roundId?: bigint;
    answer?: bigint;
    startedAt?: number;
    updatedAt?: number;
    answeredInRound?: bigint;
  }
  const roundWords = ({ answer = 320_012_345_678n, ...of }: RoundWords): Hex => {
    const { roundId = 7n, startedAt = now - 30, updatedAt = now - 30, answeredInRound = roundId } = of;
    return abiWords(roundId, answer, BigInt(startedAt), BigInt(updatedAt), answeredInRound);
  };
  const deploy = (round: RoundWords, decimals = 8n): Promise<Address> =>
    deployAnswers(chain.url, { [latestRoundData]: roundWords(round), [decimalsOf]: abiWords(decimals) });
  const ask = async (contract: Address, more: Partial<ChainlinkRateSource> = {}): Promise<string> =>
    shown(await askSource(aggregatorAt(contract, more), now));

  test.each([
    ['no decimals', 3_200n, 0n, '3200'],
    ['six decimals', 3_200_500_000n, 6n, '3200.5'],
    ['eight decimals', 320_012_345_678n, 8n, '3200.12345678'],
    ['18 decimals', 3_200_000_000_000_000_000_001n, 18n, '3200.000000000000000001'],
    ['40 decimals', 10n ** 40n + 1n, 40n, `1.${'0'.repeat(39)}1`],
    ['the largest answer', 2n ** 255n - 1n, 0n, String(2n ** 255n - 1n)],
    ['the smallest answer', 1n, 18n, '0.000000000000000001'],
  ])('with %s gives exactly its answer', async (_, answer, decimals, rate) => {
    expect(await ask(await deploy({ answer }, decimals))).toBe(`${rate} at -30`);
  });

  test.each([
    [3_200n, 0n, '0.0003125'],
    [312_500_000_000_000n, 18n, '3200'],
    [1n, 18n, '1000000000000000000'],
    [3_200_500_000n, 6n, '0.000312451179503202624589907826902047'],
  ])('of native units for a token, %s with %s decimals, is inverted', async (answer, decimals, rate) => {
    expect(await ask(await deploy({ answer }, decimals), { inverse: true })).toBe(`${rate} at -30`);
  });

  test.each([
    ['zero', { answer: 0n }, 'not_positive'],
    ['a negative answer', { answer: -320_000_000_000n }, 'not_positive'],
    ['the lowest answer of all', { answer: -(2n ** 255n) }, 'not_positive'],
    ['round zero', { roundId: 0n }, 'not_complete'],
    ['an answer of an earlier round', { roundId: 8n, answeredInRound: 7n }, 'not_complete'],
    ['a round that has not begun', { startedAt: 0 }, 'not_complete'],
    ['a round without an answer yet', { updatedAt: 0 }, 'not_complete'],
    ['a time that is none', { updatedAt: 2 ** 40 }, 'malformed'],
  ])('with %s gives no rate', async (_, round, problem) => {
    expect(await ask(await deploy(round))).toBe(problem);
  });

  test.each([41n, 256n, beyondUint256 - 1n])('with %s decimals gives no rate', async (decimals) => {
    expect(await ask(await deploy({}, decimals))).toBe('malformed');
  });

  test('whose inverse has too few digits left gives no rate: rounded, it would be a wrong one', async () => {
    const contract = await deploy({ answer: 3n * 10n ** 30n }, 0n);
    expect(await ask(contract, { inverse: true })).toBe('malformed');
  });

  test.each([
    ['as old as it may be', { updatedAt: now - 59 }, '3200.12345678'],
    ['too old', { updatedAt: now - 60 }, 'too_old'],
    ['from the future', { updatedAt: now + 61 }, 'in_the_future'],
  ])('whose answer is %s is judged by its own time', async (_, round, expected) => {
    const source = aggregatorAt(await deploy(round));
    expect(judged(source, await askSource(source, now))).toBe(expected);
  });

  test('that does not exist, reverts, or does not answer with five words gives no rate', async () => {
    expect(await ask(noContract)).toBe('malformed');
    const decimals = { [decimalsOf]: abiWords(8n) };
    expect(await ask(await deployAnswers(chain.url, decimals))).toBe('malformed');
    const round = roundWords({});
    expect(await ask(await deployAnswers(chain.url, { [latestRoundData]: round }))).toBe('malformed');
    for (const wrong of [
      '0x',
      round.slice(0, -2),
      `${round}00`,
      round.slice(0, -64),
      `${round}${round.slice(2)}`,
    ])
      expect(
        await ask(await deployAnswers(chain.url, { [latestRoundData]: wrong as Hex, ...decimals })),
      ).toBe('malformed');
  });

  test('of another chain, of a node that is slow, down or no node gives no rate', async () => {
    const contract = await deploy({});
    expect(await ask(contract, { chainId: 1 })).toBe('wrong_chain');
    expect(await ask(contract, { rpcUrl: 'http://127.0.0.1:1/' })).toBe('unreachable');
    const page = await startRateSource('<html>');
    expect(await ask(contract, { rpcUrl: page.url })).toBe('malformed');
    page.delayMs = 600_000;
    const begunMs = performance.now();
    const slow = aggregatorAt(contract, { rpcUrl: page.url });
    expect(shown(await askChainlinkRate(slow, now, 100))).toBe('unreachable');
    expect(performance.now() - begunMs).toBeLessThan(soonMs(100));
  });

  test('whose node refuses to answer gives no rate, and is not called malformed', async () => {
    const contract = await deploy({});
    const proxy = await startRpcProxy(chain.url);
    proxy.lie = ({ method }) =>
      method === 'eth_call' ? { error: { code: -32_005, message: 'limit exceeded' } } : undefined;
    expect(await ask(contract, { rpcUrl: proxy.url })).toBe('unreachable');
  });

  test.each([
    ['up for longer than the grace period', { answer: 0n, startedAt: now - 3_601 }, '3200.12345678 at -30'],
    ['up for exactly the grace period', { answer: 0n, startedAt: now - 3_600 }, 'sequencer_down'],
    ['up since a moment', { answer: 0n, startedAt: now - 1 }, 'sequencer_down'],
    ['down', { answer: 1n, startedAt: now - 90_000 }, 'sequencer_down'],
    ['in a state that is none', { answer: 2n, startedAt: now - 90_000 }, 'sequencer_down'],
    ['not initialised', { answer: 0n, startedAt: 0 }, 'sequencer_down'],
  ])('of a rollup whose sequencer is %s', async (_, feed, expected) => {
    const sequencerFeed = await deploy(feed, 0n);
    expect(await ask(await deploy({}), { sequencerFeed })).toBe(expected);
  });

  test('whose sequencer feed is not a contract gives no rate', async () => {
    expect(await ask(await deploy({}), { sequencerFeed: noContract })).toBe('malformed');
  });
});

describe('a pool', () => {
  const selectors = ['token0()', 'token1()', 'decimals()', 'observe(uint32[])'] as const;
  const [token0, token1, decimalsOf, observe] = selectors.map(toFunctionSelector) as [Hex, Hex, Hex, Hex];
  const windowSecs = 1_800;
  const observeWindow: Hex = `${observe}${abiWords(32n, 2n, BigInt(windowSecs), 0n).slice(2)}`;
  const start = -123_456_789_012n;

  interface Pool {
    readonly decimals: readonly [number, number];
    readonly native: 0 | 1;
    readonly observed: Hex;
  }
  async function deployPool({ decimals, native, observed }: Pool): Promise<UniswapRateSource & RateSource> {
    const deployToken = (of: number) => deployAnswers(chain.url, { [decimalsOf]: abiWords(BigInt(of)) });
    const tokens = [await deployToken(decimals[0]), await deployToken(decimals[1])] as const;
    const contract = await deployAnswers(chain.url, {
      [token0]: abiWords(tokens[0]),
      [token1]: abiWords(tokens[1]),
      [observeWindow]: observed,
    });
    const { chainId, url: rpcUrl } = chain;
    const common = { name: 'pool', maxAgeSecs: 60, kind: 'uniswap_v3' as const, chainId, rpcUrl };
    return { ...common, contract, nativeToken: tokens[native], windowSecs };
  }
  const meanOf = (tick: bigint): Hex => sums(start, start + tick * BigInt(windowSecs));
  const usual = { decimals: [6, 18], native: 1, observed: meanOf(195_000n) } as const;

  /** Exact to 80 digits, from another library. */
  const Exact = Decimal.clone({ precision: 120, toExpPos: 200, toExpNeg: -200 });
  function exactRateOf(
    tick: number,
    [decimals0, decimals1]: readonly [number, number],
    native: 0 | 1,
  ): Decimal {
    const atoms1ForAtom0 = new Exact('1.0001').pow(tick);
    const tens = new Exact(10).pow(decimals0 - decimals1);
    const price = atoms1ForAtom0.times(tens);
    return native === 0 ? price : new Exact(1).dividedBy(price);
  }

  test.each([
    [195_000, [6, 18], 1],
    [-195_000, [18, 6], 0],
    [0, [18, 18], 0],
    [0, [18, 6], 0],
    [1, [18, 18], 1],
    [-1, [18, 18], 1],
    [-276_325, [18, 6], 0],
    [81_234, [8, 18], 0],
    [887_272, [18, 18], 0],
    [-887_272, [18, 18], 1],
    [-887_272, [36, 0], 0],
    [887_272, [0, 36], 1],
  ] as const)(
    'at the mean tick %i with decimals %j and native token %i gives its price',
    async (tick, decimals, native) => {
      const source = await deployPool({ decimals, native, observed: meanOf(BigInt(tick)) });
      const said = await askSource(source, now);
      if (said.kind !== 'rate') throw new Error(said.problem);
      const expected = exactRateOf(tick, decimals, native);
      const rate = new Exact(rateText(said.rate));
      expect(rate.gte(expected)).toBe(true);
      expect(rate.minus(expected).lte('1e-36')).toBe(true);
      expect(Math.abs(said.observedAtSecs - Date.now() / 1_000)).toBeLessThan(30);
    },
  );

  test.each([
    ['rounded down between two ticks', 10n * 1_800n + 1_799n, 10],
    ['rounded down between two negative ticks', -10n * 1_800n - 1n, -11],
    ['exact at a negative tick', -10n * 1_800n, -10],
  ])('has a mean tick that is %s', async (_, difference, tick) => {
    const decimals = [18, 18] as const;
    const source = await deployPool({ decimals, native: 0, observed: sums(start, start + difference) });
    const said = await askSource(source, now);
    if (said.kind !== 'rate') throw new Error(said.problem);
    const expected = exactRateOf(tick, decimals, 0);
    expect(new Exact(rateText(said.rate)).minus(expected).abs().lte('1e-36')).toBe(true);
  });

  test.each([
    ['a tick above all', { ...usual, observed: meanOf(887_273n) }],
    ['a tick below all', { ...usual, observed: meanOf(-887_273n) }],
    ['sums of ticks that no pool has', { ...usual, observed: sums(-(2n ** 255n), 2n ** 255n - 1n) }],
    ['a price with too few digits left', { ...usual, decimals: [18, 18], observed: meanOf(887_272n) }],
    ['a token of 37 decimals', { ...usual, decimals: [37, 18] }],
    ['sums of another shape', { ...usual, observed: abiWords(64n, 160n, 3n, 0n, 1n, 2n, 5n, 9n) }],
    ['one sum only', { ...usual, observed: abiWords(64n, 128n, 1n, 0n, 1n, 5n) }],
  ] as [string, Pool][])('with %s gives no rate', async (_, pool) => {
    expect(shown(await askSource(await deployPool(pool), now))).toBe('malformed');
  });

  test('that does not reach back so far, has other tokens or does not exist gives no rate', async () => {
    const source = await deployPool(usual);
    const ask = async (more: Partial<UniswapRateSource>) =>
      shown(await askSource({ ...source, ...more }, now));
    // the pool reverts for a window of which it knows nothing
    expect(await ask({ windowSecs: 3_600 })).toBe('malformed');
    expect(await ask({ nativeToken: noContract })).toBe('malformed');
    expect(await ask({ contract: noContract })).toBe('malformed');
    const sameTwice = await deployAnswers(chain.url, {
      [token0]: abiWords(source.nativeToken),
      [token1]: abiWords(source.nativeToken),
      [observeWindow]: usual.observed,
    });
    expect(await ask({ contract: sameTwice })).toBe('malformed');
    expect(await ask({ chainId: 1 })).toBe('wrong_chain');
    const page = await startRateSource('<html>');
    page.delayMs = 600_000;
    expect(shown(await askUniswapRate({ ...source, rpcUrl: page.url }, 100))).toBe('unreachable');
  });

  test('of a node that no longer follows its chain is too old, and of one with an invalid time malformed', async () => {
    const source = await deployPool(usual);
    const proxy = await startRpcProxy(chain.url);
    const frozen = await newestBlock();
    const asked = { ...source, rpcUrl: proxy.url };
    for (const [timestamp, expected] of [
      [now - 60, 'too_old'],
      [now + 61, 'in_the_future'],
      [2n ** 64n - 1n, 'malformed'],
    ] as const) {
      proxy.lie = ({ method }) =>
        method === 'eth_getBlockByNumber'
          ? { result: { ...frozen, timestamp: `0x${timestamp.toString(16)}` } }
          : undefined;
      expect(judged(source, await askSource(asked, now))).toBe(expected);
    }
  });
});
