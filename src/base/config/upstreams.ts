import type { Constants } from './constants.ts';
import type { Reading } from './reading.ts';
import { secret } from './secret-source.ts';
import { readSecret } from './secrets.ts';
import { type ConfigOf, readTables } from './table.ts';
import { secureBaseUrl } from './urls.ts';
import { plainName, wholeNumber } from './values.ts';

export const upstreamShape = {
  name: plainName.describe('Name, for `upstreams` of models'),
  base_url: secureBaseUrl.describe('`/chat/completions` is appended; no trailing slash'),
  key: secret.describe('Bearer token'),
  timeout_ms: wholeNumber(1, 3_600_000)
    .default(120_000)
    .describe(
      'Until an answer begins, or is complete if not streamed. A pause in a stream: half as long; the whole stream: five times',
    ),
  weight: wholeNumber(1, 1_000).default(1).describe("Share of a model's requests"),
  max_concurrent: wholeNumber(1, 100_000)
    .default(256)
    .describe('Simultaneous completions of a gateway; at most half for free models'),
} as const;

type TimeLimits = Omit<Constants['upstream'], 'idleOfTimeout' | 'totalOfTimeout'>;

/** A server that implements OpenAI's API. */
export interface UpstreamConfig extends Omit<ConfigOf<typeof upstreamShape>, 'timeoutMs'>, TimeLimits {
  /** Until an answer begins; without streaming, until it is complete. */
  readonly firstByteTimeoutMs: number;
  /** Between two pieces of an answer. */
  readonly idleTimeoutMs: number;
  /** Of a whole answer. */
  readonly totalTimeoutMs: number;
  /** Of `max_concurrent`, this many may be of free models: half, so that paid ones find a place. */
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
    const { name } = table.values;
    const earlier = name === undefined ? undefined : names.get(name);
    if (earlier !== undefined)
      reading.report.mistake([...table.at, 'name'], `repeats the name of upstreams[${earlier}]`);
    else if (name !== undefined) names.set(name, index);
    const key = await readSecret(table, 'key', { minChars: 1 }, reading);
    if (table.whole === undefined) continue;
    const { timeoutMs, ...rest } = table.whole;
    const { idleOfTimeout, totalOfTimeout, ...limits } = reading.constants.upstream;
    whole.push({
      ...limits,
      ...rest,
      firstByteTimeoutMs: timeoutMs,
      idleTimeoutMs: Math.ceil(idleOfTimeout * timeoutMs),
      totalTimeoutMs: totalOfTimeout * timeoutMs,
      maxConcurrentFree: Math.ceil(rest.maxConcurrent / 2),
      ...(key !== undefined && { key }),
    });
  }
  return { whole, names: [...names.keys()] };
}
