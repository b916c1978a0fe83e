import type { AlertsConfig } from './config.ts';
import type { Reading } from './reading.ts';
import { readSecret } from './secrets.ts';
import { readTable } from './table.ts';
import { webhookUrl } from './urls.ts';
import { filePath, variableName, wholeNumber } from './values.ts';

const minSecretChars = 16;

const alertsShape = {
  webhook: webhookUrl.optional(),
  secret_env: variableName.optional(),
  secret_file: filePath.optional(),
  unresolved_after_secs: wholeNumber(1, 86_400).default(300),
} as const;

/** Reads `[alerts]` and the webhook's secret; undefined after a report. */
export async function readAlerts(raw: unknown, reading: Reading): Promise<AlertsConfig | undefined> {
  const { at, values, whole, names } = readTable(alertsShape, raw ?? {}, ['alerts'], reading.report);
  for (const key of ['secret_env', 'secret_file'] as const) {
    if (names(key) && !names('webhook'))
      reading.report.mistake([...at, key], 'would be ignored: there is no webhook');
  }
  const secret = await readSecret(
    {
      at,
      envKey: 'secret_env',
      envName: values.secret_env,
      fileKey: 'secret_file',
      filePath: values.secret_file,
      minChars: minSecretChars,
    },
    reading,
  );
  if (whole === undefined) return undefined;
  const { webhook: url, unresolved_after_secs: unresolvedAfterSecs } = whole;
  if (url === undefined) return { unresolvedAfterSecs };
  return { webhook: { url, ...(secret !== undefined && { secret }) }, unresolvedAfterSecs };
}
