import { z } from 'zod';
import type { Reading } from './reading.ts';
import { secret } from './secret-source.ts';
import { readSecret } from './secrets.ts';
import { readTable } from './table.ts';
import { privateBaseUrl } from './urls.ts';

const ratioText = 'must be a number from 0 to 1';

export const tracesShape = {
  endpoint: privateBaseUrl.describe("Collector's OTLP/HTTP receiver; `/v1/traces` is appended"),
  sample_ratio: z
    .preprocess(
      (raw) => (typeof raw === 'bigint' ? Number(raw) : raw),
      z.number(ratioText).min(0, ratioText).max(1, ratioText),
    )
    .default(1)
    .meta({ type: 'number, 0 to 1' })
    .describe('Share of traces that are recorded'),
  headers: secret.describe('`name=value,name=value`, values percent-encoded'),
} as const;

/** Where traces are sent. */
export interface TracesConfig {
  /** No trailing slash. */
  readonly endpoint: string;
  readonly sampleRatio: number;
  /** How the traces name this gateway; the same for all of a ledger. */
  readonly serviceName: string;
  /** Secrets. Names are in lower case. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Reads `[traces]`; undefined if the table is missing, or after a report. */
export async function readTraces(
  raw: unknown,
  reading: Reading,
  serviceName = '',
): Promise<TracesConfig | undefined> {
  if (raw === undefined) return undefined;
  const table = readTable(tracesShape, raw, ['traces'], reading.report);
  const list = await readSecret(table, 'headers', { minChars: 3 }, reading);
  const headers = list === undefined || reading.skippedSecrets ? {} : readHeaders(list);
  if (headers === undefined)
    reading.report.mistake(
      [...table.at, 'headers'],
      'must name headers as name=value,name=value, with percent-encoded values',
    );
  if (!table.whole || headers === undefined) return undefined;
  const { endpoint, sampleRatio } = table.whole;
  return { endpoint, sampleRatio, serviceName, headers };
}

const headerForm = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+)=(.+)$/;

/** Undefined if one of them is malformed. */
function readHeaders(list: string): Record<string, string> | undefined {
  const headers: Record<string, string> = {};
  for (const item of list.split(',')) {
    const [, name, encoded] = headerForm.exec(item) ?? [];
    const value = encoded === undefined ? undefined : decoded(encoded);
    if (name === undefined || value === undefined || !/^[ -~]+$/.test(value)) return undefined;
    headers[name.toLowerCase()] = value;
  }
  return headers;
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
