import { z } from 'zod';
import type { Constants } from './constants.ts';
import type { Reading } from './reading.ts';
import { secret } from './secret-source.ts';
import { ownSecretChars, readSecret } from './secrets.ts';
import { type ConfigOf, readTable, type Table } from './table.ts';
import { webhookUrl } from './urls.ts';

export const alertsShape = {
  webhook: webhookUrl.optional().describe('Where alerts are posted'),
  secret: secret.describe('Signs messages to `webhook` (Standard Webhooks)'),
  slack_url: secret.describe("Slack's incoming webhook"),
  pagerduty_key: secret.describe("Routing key of PagerDuty's Events API v2"),
  pagerduty_url: webhookUrl
    .default('https://events.pagerduty.com/v2/enqueue')
    .describe('For another region of PagerDuty'),
} as const;

type Alerting = Constants['alerts'];

export interface AlertsConfig extends ConfigOf<typeof alertsShape>, Alerting {
  /** What the alerts call this ledger. */
  readonly source: string;
  /** Signs the messages to the webhook. */
  readonly secret: string | undefined;
  readonly slackUrl: string | undefined;
  readonly pagerdutyKey: string | undefined;
}

/** Reads `[alerts]` and its secrets; undefined after a report. */
export async function readAlerts(
  raw: unknown,
  reading: Reading,
  source = '',
): Promise<AlertsConfig | undefined> {
  const table = readTable(alertsShape, raw ?? {}, ['alerts'], reading.report);
  if (table.names('secret') && !table.names('webhook'))
    reading.report.mistake([...table.at, 'secret'], 'would be ignored: there is no webhook');
  const key = await readSecret(table, 'secret', { minChars: ownSecretChars }, reading);
  const pagerdutyKey = await readSecret(table, 'pagerduty_key', { minChars: 1 }, reading);
  const slackUrl = await readSlackUrl(table, reading);
  return (
    table.whole && {
      ...reading.constants.alerts,
      ...table.whole,
      source,
      secret: key,
      slackUrl,
      pagerdutyKey,
    }
  );
}

/** Checked like a URL of the file; a message never contains it. */
async function readSlackUrl(table: Table<typeof alertsShape>, reading: Reading): Promise<string | undefined> {
  const url = await readSecret(table, 'slack_url', { minChars: 1 }, reading);
  if (url === undefined || reading.skippedSecrets) return url;
  const checked = z.safeParse(webhookUrl, url);
  if (checked.success) return checked.data;
  reading.report.mistake(
    [...table.at, 'slack_url'],
    `names a secret that ${checked.error.issues[0]?.message}`,
  );
  return undefined;
}
