import type { UpstreamConfig } from './config.ts';
import type { Reading } from './reading.ts';
import type { Report } from './report.ts';
import { readSecret } from './secrets.ts';
import { readTables, type Table } from './table.ts';
import { secureBaseUrl } from './urls.ts';
import { filePath, plainName, variableName, wholeNumber } from './values.ts';

const upstreamShape = {
  name: plainName,
  base_url: secureBaseUrl,
  key_env: variableName.optional(),
  key_file: filePath.optional(),
  connect_timeout_ms: wholeNumber(1, 60_000).default(5_000),
  first_byte_timeout_ms: wholeNumber(1, 3_600_000).default(120_000),
  idle_timeout_ms: wholeNumber(1, 3_600_000).default(60_000),
  total_timeout_ms: wholeNumber(1, 3_600_000).default(600_000),
  weight: wholeNumber(1, 1_000).default(1),
  max_concurrent: wholeNumber(1, 100_000).default(256),
} as const;

type UpstreamTable = Table<typeof upstreamShape>;

/** What `[[upstreams]]` holds: the whole ones with their keys, and every name, so that no model is told of it twice. */
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
    const key = await readKey(table, reading);
    if (table.whole !== undefined) whole.push(toUpstream(table.whole, key));
  }
  return { whole, names: [...names.keys()] };
}

function checkTimeouts({ at, values }: UpstreamTable, report: Report): void {
  const { total_timeout_ms: totalMs, first_byte_timeout_ms: firstByteMs } = values;
  if (totalMs === undefined || firstByteMs === undefined || totalMs >= firstByteMs) return;
  report.mistake([...at, 'total_timeout_ms'], `must not be below first_byte_timeout_ms (${firstByteMs})`);
}

function readKey({ at, values }: UpstreamTable, reading: Reading): Promise<string | undefined> {
  return readSecret(
    {
      at,
      envKey: 'key_env',
      envName: values.key_env,
      fileKey: 'key_file',
      filePath: values.key_file,
      minChars: 1,
    },
    reading,
  );
}

function toUpstream(whole: NonNullable<UpstreamTable['whole']>, key: string | undefined): UpstreamConfig {
  return {
    name: whole.name,
    baseUrl: whole.base_url,
    ...(key !== undefined && { key }),
    connectTimeoutMs: whole.connect_timeout_ms,
    firstByteTimeoutMs: whole.first_byte_timeout_ms,
    idleTimeoutMs: whole.idle_timeout_ms,
    totalTimeoutMs: whole.total_timeout_ms,
    weight: whole.weight,
    maxConcurrent: whole.max_concurrent,
  };
}
