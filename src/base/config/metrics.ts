import type { z } from 'zod';
import type { Reading } from './reading.ts';
import { secret } from './secret-source.ts';
import { ownSecretChars, readSecret } from './secrets.ts';
import { readTable } from './table.ts';
import { isLoopback } from './hosts.ts';
import { bindAddress } from './urls.ts';

export const metricsShape = {
  bind_address: bindAddress
    .optional()
    .describe("Separate port, without a token; default: the gateway's, with `token`"),
  token: secret.describe('Bearer token of scrapes; required without `bind_address`'),
} as const;

/** What the metrics' reader must have: a connection to the port, the token, or both. */
export interface MetricsConfig {
  /** Undefined if the gateway's own port serves them. */
  readonly bindAddress: z.infer<typeof bindAddress> | undefined;
  /** The bearer token that a scrape needs; always there on the gateway's own port. */
  readonly token: string | undefined;
}

/** Reads `[metrics]`; undefined if the table is missing, or after a report. */
export async function readMetrics(raw: unknown, reading: Reading): Promise<MetricsConfig | undefined> {
  if (raw === undefined) return undefined;
  const table = readTable(metricsShape, raw, ['metrics'], reading.report);
  const needsToken = !table.names('bind_address');
  const missing = 'is missing: on the port of the clients metrics need a token; or name a bind_address';
  const rules = { minChars: ownSecretChars, ...(needsToken ? { missing } : {}) };
  const token = await readSecret(table, 'token', rules, reading);
  const { host } = table.values.bindAddress ?? {};
  if (host !== undefined && !isLoopback(host) && token === undefined)
    reading.report.warning(
      ['metrics', 'bind_address'],
      'serves the metrics to everyone who reaches it: name a token',
    );
  return table.whole && { bindAddress: table.whole.bindAddress, token };
}
