import type { Constants } from './constants.ts';
import type { Reading } from './reading.ts';
import type { Report } from './report.ts';
import { secret } from './secret-source.ts';
import { readSecret } from './secrets.ts';
import { type ConfigOf, readTables, type Table } from './table.ts';
import { secureBaseUrl } from './urls.ts';
import { plainName, wholeNumber } from './values.ts';

export const upstreamShape = {
  name: plainName.describe('The name that models use'),
  base_url: secureBaseUrl.describe('`/chat/completions` is appended to it; no trailing slash'),
  key: secret.describe('Its bearer token, if it requires one'),
  first_byte_timeout_ms: wholeNumber(1, 3_600_000)
    .default(120_000)
    .describe('Until an answer begins; without streaming, until it is complete'),
  idle_timeout_ms: wholeNumber(1, 3_600_000).default(60_000).describe('Between two pieces of an answer'),
  total_timeout_ms: wholeNumber(1, 3_600_000).default(600_000).describe('Of a whole answer'),
  weight: wholeNumber(1, 1_000).default(1).describe('Its share of requests among the upstreams of a model'),
  max_concurrent: wholeNumber(1, 100_000)
    .default(256)
    .describe('Completions at the same time, of one gateway; half of them may be of free models'),
} as const;

type UpstreamTable = Table<typeof upstreamShape>;

type TimeLimits = Constants['upstream'];

/** A server that implements OpenAI's API. */
export interface UpstreamConfig extends ConfigOf<typeof upstreamShape>, TimeLimits {
  /** Of `max_concurrent`, so many may be of free models: half, so that paid ones find a place. */
  readonly maxConcurrentFree: number;
  /** The bearer token itself; undefined for a server that requires none. */
  readonly key?: string;
}

/** The valid upstreams with their keys, and the names of all, so that a wrong upstream is reported once and not per model. */
export interface Upstreams {
  readonly whole: readonly UpstreamConfig[];
  readonly names: readonly string[];
}

/** Reads `[[upstreams]]` and their keys; what is wrong is reported. */
export async function readUpstreams(raw: unknown, reading: Reading): Promise<Upstreams> {
  const whole: UpstreamConfig[] = [];
  const names = new Map<string, number>();
  for (const [index, table] of readTables(upstreamShape, raw, ['upstreams'], reading.report).entries()) {
    checkTimeouts(table, reading.report);
    const { name } = table.values;
    const earlier = name === undefined ? undefined : names.get(name);
    if (earlier !== undefined)
      reading.report.mistake([...table.at, 'name'], `repeats the name of upstreams[${earlier}]`);
    else if (name !== undefined) names.set(name, index);
    const key = await readSecret(table, 'key', { minChars: 1 }, reading);
    if (table.whole === undefined) continue;
    const maxConcurrentFree = Math.ceil(table.whole.maxConcurrent / 2);
    whole.push({
      ...reading.constants.upstream,
      ...table.whole,
      maxConcurrentFree,
      ...(key !== undefined && { key }),
    });
  }
  return { whole, names: [...names.keys()] };
}

function checkTimeouts({ at, values }: UpstreamTable, report: Report): void {
  const { totalTimeoutMs: totalMs, firstByteTimeoutMs: firstByteMs } = values;
  if (totalMs === undefined || firstByteMs === undefined || totalMs >= firstByteMs) return;
  report.mistake([...at, 'total_timeout_ms'], `must not be below first_byte_timeout_ms (${firstByteMs})`);
}
