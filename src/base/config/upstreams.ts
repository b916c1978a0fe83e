import type { Reading } from './reading.ts';
import type { Report } from './report.ts';
import { secret } from './secret-source.ts';
import { readSecret } from './secrets.ts';
import { type ConfigOf, readTables, type Table } from './table.ts';
import { secureBaseUrl } from './urls.ts';
import { plainName, wholeNumber } from './values.ts';

const upstreamShape = {
  name: plainName,
  /** `/chat/completions` is appended to it; no trailing slash. */
  base_url: secureBaseUrl,
  key: secret,
  connect_timeout_ms: wholeNumber(1, 60_000).default(5_000),
  first_byte_timeout_ms: wholeNumber(1, 3_600_000).default(120_000),
  /** Between two pieces of an answer. */
  idle_timeout_ms: wholeNumber(1, 3_600_000).default(60_000),
  total_timeout_ms: wholeNumber(1, 3_600_000).default(600_000),
  /** Its share of requests among the upstreams of a model. */
  weight: wholeNumber(1, 1_000).default(1),
  max_concurrent: wholeNumber(1, 100_000).default(256),
  /** Of these, at most so many of free models. */
  max_concurrent_free: wholeNumber(1, 100_000).optional(),
  /** How long a client may read nothing of its stream before another request may take its slot. */
  stalled_reader_timeout_ms: wholeNumber(1, 3_600_000).default(10_000),
} as const;

type UpstreamTable = Table<typeof upstreamShape>;

/** A server that implements OpenAI's API. */
export interface UpstreamConfig extends ConfigOf<typeof upstreamShape> {
  /** Half of all where none is configured. */
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
    checkSlots(table, reading.report);
    const { name } = table.values;
    const earlier = name === undefined ? undefined : names.get(name);
    if (earlier !== undefined)
      reading.report.mistake([...table.at, 'name'], `repeats the name of upstreams[${earlier}]`);
    else if (name !== undefined) names.set(name, index);
    const key = await readSecret(table, 'key', { minChars: 1 }, reading);
    if (table.whole === undefined) continue;
    const { maxConcurrent, maxConcurrentFree = Math.ceil(maxConcurrent / 2) } = table.whole;
    whole.push({ ...table.whole, maxConcurrentFree, ...(key !== undefined && { key }) });
  }
  return { whole, names: [...names.keys()] };
}

function checkTimeouts({ at, values }: UpstreamTable, report: Report): void {
  const { totalTimeoutMs: totalMs, firstByteTimeoutMs: firstByteMs } = values;
  if (totalMs === undefined || firstByteMs === undefined || totalMs >= firstByteMs) return;
  report.mistake([...at, 'total_timeout_ms'], `must not be below first_byte_timeout_ms (${firstByteMs})`);
}

function checkSlots({ at, values }: UpstreamTable, report: Report): void {
  const { maxConcurrent: all, maxConcurrentFree: free } = values;
  if (all === undefined || free === undefined || free <= all) return;
  report.mistake([...at, 'max_concurrent_free'], `must not be above max_concurrent (${all})`);
}
