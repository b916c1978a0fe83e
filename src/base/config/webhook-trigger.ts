import type { RotatingSecret } from '../values/rotating-secret.ts';
import type { Path } from './mistakes.ts';
import type { Reading } from './reading.ts';
import { rotatingSecret } from './secret-source.ts';
import { readRotatingSecret } from './secrets.ts';
import { type ConfigOf, readTable } from './table.ts';
import { jobIndex, oneOf, plainName, serviceId, wholeNumber } from './values.ts';

/** 24 bytes, the least that Standard Webhooks recommends, in base64. */
const leastSecretChars = 32;
const mebibyte = 1_048_576;

export const webhookTriggerShape = {
  name: plainName,
  kind: oneOf(['webhook']),
  service_id: serviceId,
  job_index: jobIndex,
  /** What senders sign with: `whsec_` and base64 as Standard Webhooks writes it, or text whose bytes are the key. */
  secret: rotatingSecret,
  /** The largest difference between the sender's clock and the gateway's. */
  tolerance_secs: wholeNumber(1, 3_600).default(300),
  max_body_bytes: wholeNumber(1, 64 * mebibyte).default(mebibyte),
} as const;

/** Requests that a sender signs make calls (`POST /triggers/webhook/{name}`). */
export interface WebhookTrigger extends ConfigOf<typeof webhookTriggerShape> {
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
  return table.whole && secrets && { ...table.whole, secrets };
}

function isKey(base64: string): boolean {
  const { length } = Buffer.from(base64, 'base64');
  return /^[A-Za-z0-9+/]+={0,2}$/.test(base64) && length >= 24 && length <= 64;
}
