import type { WebhookTrigger } from '../../../base/config/triggers.ts';
import { isWebhookSigned, type WebhookToVerify } from '../../../base/values/call-signature.ts';

/** The headers of a webhook whose signature was not looked at yet. */
export type WebhookHead = Pick<WebhookToVerify, 'id' | 'timestamp' | 'signatures'>;

export type WebhookHeadResult =
  | { readonly kind: 'read'; readonly head: WebhookHead }
  | { readonly kind: 'malformed' }
  /** Signed too long ago, or for a later time: perhaps repeated by another than its sender. */
  | { readonly kind: 'out_of_time' };

/** No dots: `{id}.{timestamp}.{body}` is signed, and with them one signature could be valid for two messages. */
const idForm = /^[A-Za-z0-9][A-Za-z0-9_:/+=-]{0,199}$/;
const timestampForm = /^(?:0|[1-9]\d{0,11})$/;

/** What the headers alone say, before a body is read. */
export function readWebhookHead(
  headers: Readonly<Record<string, string | readonly string[] | undefined>>,
  { toleranceSecs }: Pick<WebhookTrigger, 'toleranceSecs'>,
  nowSecs: number,
): WebhookHeadResult {
  const id = headers['webhook-id'];
  const timestamp = headers['webhook-timestamp'];
  const signatures = headers['webhook-signature'];
  if (typeof id !== 'string' || typeof timestamp !== 'string' || typeof signatures !== 'string')
    return { kind: 'malformed' };
  if (!idForm.test(id) || !timestampForm.test(timestamp)) return { kind: 'malformed' };
  if (Math.abs(nowSecs - Number(timestamp)) > toleranceSecs) return { kind: 'out_of_time' };
  return { kind: 'read', head: { id, timestamp, signatures } };
}

/** Which secret of the trigger a body is signed with; undefined if it is not one. */
export function findSigningSecret(
  { secrets }: Pick<WebhookTrigger, 'secrets'>,
  head: WebhookHead,
  body: Buffer,
): 'in_use' | 'second' | undefined {
  const index = secrets.findIndex((secret) => isWebhookSigned({ key: keyOf(secret), ...head, body }));
  if (index < 0) return undefined;
  return index === 0 ? 'in_use' : 'second';
}

const encodedKey = 'whsec_';

/** Standard Webhooks writes keys in base64; any other text is the key itself. */
function keyOf(secret: string): Buffer {
  return secret.startsWith(encodedKey)
    ? Buffer.from(secret.slice(encodedKey.length), 'base64')
    : Buffer.from(secret, 'utf8');
}
