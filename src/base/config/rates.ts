import { chainIdOf } from '../values/primitives.ts';
import type { RateSource, RateTerms } from '../values/token.ts';
import { rpcUrlOf } from './networks.ts';
import type { Reading } from './reading.ts';
import type { Report } from './mistakes.ts';
import { readTables, type Table } from './table.ts';
import { webhookUrl as sourceUrl } from './urls.ts';
import { address, flag, matching, network, oneOf, rate, wholeNumber } from './values.ts';
import { z } from 'zod';

const secs = wholeNumber(2, 2_592_000);
const jsonPointer = matching(
  /^(?:\/(?:[^~/\0]|~[01])*){1,16}$/,
  'must be a JSON pointer, such as "/data/rate"',
);

/** The keys of an accepted token about its rate. */
export const tokenRateShape = {
  rate_per_native_unit: rate
    .optional()
    .describe("The token's rate; with sources, the middle of `rate_bound_bps`"),
  rates: z.unknown(),
  rate_max_age_secs: secs
    .optional()
    .describe(
      "Greatest age of a source's rate (default 120); a fixed rate that is older causes a warning (default: never)",
    ),
  rate_max_deviation_bps: wholeNumber(0, 10_000)
    .optional()
    .describe('Greatest distance of a source from the median (default 100)'),
  rate_bound_bps: wholeNumber(1, 10_000)
    .optional()
    .describe("Greatest distance of the sources' rate from `rate_per_native_unit`"),
} as const;

type TokenRateTable = Pick<Table<typeof tokenRateShape>, 'at' | 'values' | 'names'>;

export const sourceShape = {
  kind: oneOf(['http', 'chainlink', 'uniswap_v3']).describe('Decides which other keys apply'),
  max_age_secs: secs.optional().describe('Overrides `rate_max_age_secs`'),
  url: sourceUrl.optional().describe('`http`: the address'),
  pointer: jsonPointer.optional().describe('`http`: where the answer has the rate'),
  time_pointer: jsonPointer.optional().describe("`http`: where the answer has the rate's time"),
  inverse: flag.default(false).describe('The source states native units for one token'),
  network: network.optional().describe("The contract's chain"),
  contract: address.optional().describe('`chainlink`: the aggregator; `uniswap_v3`: the pool'),
  sequencer_feed: address.optional().describe("`chainlink` on a rollup: feed of the sequencer's state"),
  native_token: address.optional().describe('`uniswap_v3`: the wrapped native token'),
} as const;

type SourceTable = Table<typeof sourceShape>;

/** Of a pool's mean price: the shorter, the cheaper it is to move. */
const windowSecs = 1_800;

/** The keys that each kind needs, and those that it may have besides. */
const keysOf = {
  http: { needs: ['url', 'pointer'], takes: ['time_pointer', 'inverse'] },
  chainlink: {
    needs: ['network', 'contract'],
    takes: ['inverse', 'sequencer_feed'],
  },
  uniswap_v3: { needs: ['network', 'contract', 'native_token'], takes: [] },
} as const satisfies Record<
  RateSource['kind'],
  { needs: readonly (keyof typeof sourceShape)[]; takes: readonly (keyof typeof sourceShape)[] }
>;

const maxSources = 16;
const defaultMaxAgeSecs = 120;
const defaultDeviationBps = 100;

/** Reads `[[accepted_tokens.rates]]` and the token’s keys about rates; undefined if the token's rate is fixed, or after a report. */
export function readRateTerms(
  { at, values, names }: TokenRateTable,
  reading: Reading,
): RateTerms | undefined {
  const { report } = reading;
  if (!names('rates')) {
    for (const key of ['rate_max_deviation_bps', 'rate_bound_bps'] as const)
      if (names(key))
        report.mistake([...at, key], 'would be ignored: the token has no [[accepted_tokens.rates]]');
    return undefined;
  }
  const maxAgeSecs = values.rateMaxAgeSecs ?? defaultMaxAgeSecs;
  const tables = readTables(sourceShape, values.rates, [...at, 'rates'], report);
  const sources = tables.flatMap((table, index) => readSource(table, index, maxAgeSecs, reading) ?? []);
  // wrong tables are reported already
  if (tables.length > maxSources) report.mistake([...at, 'rates'], `has more than ${maxSources} sources`);
  if (Array.isArray(values.rates) && tables.length === 0) report.mistake([...at, 'rates'], 'has no source');
  return {
    sources,
    maxAgeSecs,
    maxDeviationBps: values.rateMaxDeviationBps ?? defaultDeviationBps,
    // more than half: the others cannot make a rate
    minSources: Math.floor(tables.length / 2) + 1,
    bound: readBound({ at, values, names }, report),
  };
}

/** With sources a fixed rate is only a bound. */
function readBound({ at, values, names }: TokenRateTable, report: Report): RateTerms['bound'] {
  const [hasRate, hasBps] = [names('rate_per_native_unit'), names('rate_bound_bps')];
  if (hasRate && !hasBps)
    report.mistake(
      [...at, 'rate_bound_bps'],
      'is missing: with sources, rate_per_native_unit is only a bound, and this key is the greatest distance of the rate from it',
    );
  if (hasBps && !hasRate)
    report.mistake([...at, 'rate_per_native_unit'], 'is missing: rate_bound_bps is about it');
  const { ratePerNativeUnit: fixed, rateBoundBps: bps } = values;
  return fixed && bps !== undefined ? { rate: fixed, bps } : undefined;
}

function readSource(
  table: SourceTable,
  index: number,
  tokenMaxAgeSecs: number,
  reading: Reading,
): RateSource | undefined {
  checkKeys(table, reading.report);
  const rpcUrl = rpcUrlOf(table.values.network, [...table.at, 'network'], reading);
  const { whole } = table;
  if (!whole) return undefined;
  const { kind, url, pointer, timePointer, inverse, network: chain, contract, nativeToken } = whole;
  // in logs and metrics: its place in the file, which finds it there
  const common = { name: `source-${index + 1}`, maxAgeSecs: whole.maxAgeSecs ?? tokenMaxAgeSecs };
  if (kind === 'http')
    return url !== undefined && pointer !== undefined
      ? { ...common, kind, url, pointer, timePointer, inverse }
      : undefined;
  const chainId = chain && chainIdOf(chain);
  if (chainId === undefined || rpcUrl === undefined || contract === undefined) return undefined;
  const onChain = { ...common, chainId, rpcUrl, contract };
  if (kind === 'chainlink')
    return { ...onChain, kind, inverse, sequencerFeed: whole.sequencerFeed, ...reading.constants.rateSource };
  return nativeToken && { ...onChain, kind, nativeToken, windowSecs };
}

function checkKeys({ at, values, names }: SourceTable, report: Report): void {
  if (values.kind === undefined) return;
  const { needs, takes } = keysOf[values.kind];
  for (const key of needs)
    if (!names(key)) report.mistake([...at, key], `is missing: ${values.kind} needs it`);
  const known = new Set<string>(['kind', 'max_age_secs', ...needs, ...takes]);
  for (const key of Object.keys(sourceShape) as (keyof typeof sourceShape)[])
    if (names(key) && !known.has(key))
      report.mistake([...at, key], `would be ignored: ${values.kind} does not have this key`);
}
