import type { Reading } from './reading.ts';
import { ownSecretChars, readSecret, secretKeys } from './secrets.ts';
import { type ConfigOf, readTable } from './table.ts';
import { webhookUrl } from './urls.ts';
import { wholeNumber } from './values.ts';

export const alertsShape = {
  /** Where alerts are posted; nowhere where left out. */
  webhook: webhookUrl.optional(),
  ...secretKeys('secret'),
  /** How long a settlement may stay unresolved before the operator gets an alert. */
  unresolved_after_secs: wholeNumber(1, 86_400).default(300),
} as const;

export interface AlertsConfig extends ConfigOf<typeof alertsShape> {
  /** Signs the messages to the webhook. */
  readonly secret: string | undefined;
}

/** Reads `[alerts]` and the webhook's secret; undefined after a report. */
export async function readAlerts(raw: unknown, reading: Reading): Promise<AlertsConfig | undefined> {
  const table = readTable(alertsShape, raw ?? {}, ['alerts'], reading.report);
  for (const key of ['secret_env', 'secret_file'] as const) {
    if (table.names(key) && !table.names('webhook'))
      reading.report.mistake([...table.at, key], 'would be ignored: there is no webhook');
  }
  const secret = await readSecret(table, 'secret', { minChars: ownSecretChars }, reading);
  return table.whole && { ...table.whole, secret };
}
