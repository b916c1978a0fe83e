import type { RotatingSecret } from '../values/rotating-secret.ts';
import type { Constants } from './constants.ts';
import type { Path } from './mistakes.ts';
import type { Reading } from './reading.ts';
import { rotatingSecret } from './secret-source.ts';
import { readRotatingSecret } from './secrets.ts';
import { type ConfigOf, readTable } from './table.ts';
import { jobIndex, oneOf, plainName, serviceId } from './values.ts';

/** 24 bytes, the least that Standard Webhooks recommends, in base64. */
const leastSecretChars = 32;

export const webhookTriggerShape = {
  name: plainName.describe('Unique, in logs, metrics and alerts'),
  kind: oneOf(['webhook']).describe('What calls the job'),
  service_id: serviceId.describe('Service of the called job'),
  job_index: jobIndex.describe('Its index in the service'),
  secret: rotatingSecret.describe(
    'Senders sign with it: `whsec_` and base64 (Standard Webhooks), or text whose bytes are the key',
  ),
} as const;

type Bounds = Constants['webhookTrigger'];

/** Requests that a sender signs make calls (`POST /triggers/webhook/{name}`). */
export interface WebhookTrigger extends ConfigOf<typeof webhookTriggerShape>, Bounds {
  readonly secrets: RotatingSecret;
}

export async function readWebhookTrigger(
  raw: unknown,
  at: Path,
  reading: Reading,
): Promise<WebhookTrigger | undefined> {
  const table = readTable(webhookTriggerShape, raw, at, reading.report);
  const missing = 'is missing: say where it is, as "env:NAME" or "file:/path"';
  const rules = { minChars: leastSecretChars, missing };
  const secrets = await readRotatingSecret(table, 'secret', rules, reading);
  for (const secret of secrets ?? [])
    if (secret.startsWith('whsec_') && !isKey(secret.slice('whsec_'.length)))
      reading.report.mistake(
        [...at, 'secret'],
        'begins with whsec_, but no base64 of 24 to 64 bytes follows',
      );
  return table.whole && secrets && { ...reading.constants.webhookTrigger, ...table.whole, secrets };
}

function isKey(base64: string): boolean {
  const { length } = Buffer.from(base64, 'base64');
  return /^[A-Za-z0-9+/]+={0,2}$/.test(base64) && length >= 24 && length <= 64;
}
