import { toFunctionSelector } from 'viem/utils';
import type { SourceAnswer } from '../../../base/values/round.ts';
import { exactRate, inverseRate } from '../../../base/values/rate.ts';
import type { ChainlinkRateSource } from '../../../base/values/token.ts';
import { contractReader, type ContractReader, signed } from './contract-reader.ts';
import { beyondSecs, problem, type Read } from './source-answer.ts';

const latestRoundData = toFunctionSelector('latestRoundData()');
const decimals = toFunctionSelector('decimals()');
const maxDecimals = 40n;

/** Asks an aggregator for its last round. The round must be complete; the sequencer of its chain, where one is named, up. Never rejects. */
export async function askChainlinkRate(
  source: ChainlinkRateSource,
  nowSecs: number,
  timeoutMs: number,
): Promise<SourceAnswer> {
  const reader = contractReader(source, timeoutMs);
  try {
    const chain = await reader.checkChain();
    if (chain.kind === 'problem') return chain;
    const [round, scale, sequencer] = await Promise.all([
      reader.words(source.contract, latestRoundData, 5),
      reader.words(source.contract, decimals, 1),
      checkSequencer(reader, source, nowSecs),
    ]);
    if (sequencer.kind === 'problem') return sequencer;
    if (round.kind === 'problem') return round;
    if (scale.kind === 'problem') return scale;
    return readRound(round.value, scale.value[0] ?? 0n, source.inverse);
  } finally {
    await reader.close();
  }
}

function readRound(words: readonly bigint[], scale: bigint, inverse: boolean): SourceAnswer {
  const [roundId = 0n, answerWord = 0n, startedAt = 0n, updatedAt = 0n, answeredInRound = 0n] = words;
  if (scale > maxDecimals || updatedAt >= beyondSecs) return problem('malformed');
  if (roundId === 0n || startedAt === 0n || updatedAt === 0n || answeredInRound < roundId)
    return problem('not_complete');
  const answer = signed(answerWord);
  if (answer <= 0n) return problem('not_positive');
  const said = exactRate(answer, Number(scale));
  const rate = said && (inverse ? inverseRate(said) : said);
  return rate ? { kind: 'rate', rate, observedAtSecs: Number(updatedAt) } : problem('malformed');
}

/** A sequencer uptime feed answers 0 while the sequencer is up; the time is when that began. */
async function checkSequencer(
  reader: ContractReader,
  { sequencerFeed, sequencerGraceSecs }: ChainlinkRateSource,
  nowSecs: number,
): Promise<Read<true>> {
  if (sequencerFeed === undefined) return { kind: 'read', value: true };
  const read = await reader.words(sequencerFeed, latestRoundData, 5);
  if (read.kind === 'problem') return read;
  const [, answer, startedAt = 0n] = read.value;
  const isTrusted =
    answer === 0n && startedAt > 0n && startedAt + BigInt(sequencerGraceSecs) < BigInt(nowSecs);
  return isTrusted ? { kind: 'read', value: true } : problem('sequencer_down');
}
