import { createHmac } from 'node:crypto';
import { areEqualSecrets } from './equal-secrets.ts';
import { canonicalJson } from './canonical-json.ts';
import type { RotatingSecret } from './rotating-secret.ts';

/** The signed headers of a call: names in lower case, all `x-x402-…` or `x-net-…`. */
export type CallMetadata = Readonly<Record<string, string>>;

/** A message of Standard Webhooks. */
export interface WebhookToSign {
  /** Shared with the receiver; its UTF-8 bytes are the key. With several secrets a header lists the signature of each. */
  readonly secret: string | RotatingSecret;
  /** The receiver's idempotency key: visible ASCII without dots, at most 200 characters. */
  readonly id: string;
  readonly timestampSecs: number;
  readonly body: Uint8Array;
}

/** The id is the call's idempotency key: 32 bytes, hex with 0x. */
export interface CallToSign extends WebhookToSign {
  readonly metadata: CallMetadata;
}

export interface WebhookSignatureHeaders {
  readonly 'webhook-id': string;
  readonly 'webhook-timestamp': string;
  readonly 'webhook-signature': string;
}

/** The headers of the signatures; each item of metadata is a further header. */
export interface CallSignatureHeaders extends WebhookSignatureHeaders {
  readonly 'x-net-metadata-signature': string;
}

export interface CallToVerify {
  readonly secret: string;
  /** Names in any case: node:http delivers them in lower case, a broker as the gateway spells them. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: Uint8Array;
  readonly nowSecs: number;
}

export type CallVerification =
  | {
      readonly ok: true;
      readonly id: string;
      readonly timestampSecs: number;
      readonly metadata: CallMetadata;
    }
  | { readonly ok: false; readonly reason: CallRefusal };

export type CallRefusal =
  | 'malformed_headers'
  | 'timestamp_out_of_range'
  | 'body_signature_mismatch'
  | 'metadata_signature_mismatch';

/** Largest difference between the call's and the runner's clock. */
export const callToleranceSecs = 300;

const idForm = /^0x[0-9a-f]{64}$/;
/** A dot would make messages ambiguous; `metadata` is the prefix of signatures over metadata. */
const webhookIdForm = /^(?!metadata$)[!-\-/-~]{1,200}$/;
const timestampForm = /^(?:0|[1-9]\d{0,11})$/;
const metadataName = /^x-(?:x402|net)-[\w-]+$/;
/** Text that HTTP passes on unchanged: printable ASCII without a space at either end. */
const metadataValue = /^(?:[!-~](?:[ -~]*[!-~])?)?$/;
const metadataSignature = 'x-net-metadata-signature';

/**
 * Signs a call's body by Standard Webhooks, and its metadata in the same way.
 * @throws TypeError for input that the runner could not verify: an empty secret, a malformed id or time, metadata with other
 * names or with values that HTTP would change
 */
export function signCall({ secret, id, timestampSecs, body, metadata }: CallToSign): CallSignatureHeaders {
  if (!idForm.test(id)) throw new TypeError(`malformed idempotency key: ${id}`);
  for (const [name, value] of Object.entries(metadata)) {
    const isSignable = isMetadataName(name) && name === name.toLowerCase() && metadataValue.test(value);
    if (!isSignable) throw new TypeError(`metadata cannot be signed: ${name}`);
  }
  const headers = signWebhook({ secret, id, timestampSecs, body });
  const sign = signers(secret, id, headers['webhook-timestamp']);
  return { ...headers, [metadataSignature]: sign(metadataContent(metadata), 'metadata.') };
}

/**
 * Signs a message's body by Standard Webhooks.
 * @throws TypeError for an empty secret, a malformed id or time
 */
export function signWebhook({ secret, id, timestampSecs, body }: WebhookToSign): WebhookSignatureHeaders {
  const timestamp = String(timestampSecs);
  if (!webhookIdForm.test(id) || !timestampForm.test(timestamp))
    throw new TypeError(`malformed id or time of a webhook: ${id}, ${timestamp}`);
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signers(secret, id, timestamp)(body),
  };
}

/**
 * Verifies a received call. The returned metadata is signed, its names are in lower case; every other header is
 * unauthenticated. A signed header that comes twice, also in two spellings, is refused.
 */
export function verifyCall({ secret, headers: received, body, nowSecs }: CallToVerify): CallVerification {
  const headers = lowerCased(received);
  const id = headers['webhook-id'];
  const timestamp = headers['webhook-timestamp'];
  const bodySignatures = headers['webhook-signature'];
  const metadataSignatures = headers[metadataSignature];
  const metadata = metadataOf(headers);
  if (!isForm(id, idForm) || !isForm(timestamp, timestampForm) || metadata === undefined)
    return refused('malformed_headers');
  if (typeof bodySignatures !== 'string' || typeof metadataSignatures !== 'string')
    return refused('malformed_headers');

  const timestampSecs = Number(timestamp);
  if (Math.abs(nowSecs - timestampSecs) > callToleranceSecs) return refused('timestamp_out_of_range');

  const sign = signer(secret, id, timestamp);
  if (!isAmong(sign(body), bodySignatures)) return refused('body_signature_mismatch');
  if (!isAmong(sign(metadataContent(metadata), 'metadata.'), metadataSignatures))
    return refused('metadata_signature_mismatch');
  return { ok: true, id, timestampSecs, metadata };
}

/** A message of Standard Webhooks that another party has signed. */
export interface WebhookToVerify {
  readonly key: Uint8Array;
  readonly id: string;
  /** As its header has it. */
  readonly timestamp: string;
  readonly body: Uint8Array;
  /** As the header `webhook-signature` lists them. */
  readonly signatures: string;
}

/** Whether a webhook is signed with the key. Compares in constant time. */
export function isWebhookSigned({ key, id, timestamp, body, signatures }: WebhookToVerify): boolean {
  return isAmong(signerWith(key, id, timestamp)(body), signatures);
}

function refused(reason: CallRefusal): CallVerification {
  return { ok: false, reason };
}

function isForm(value: string | readonly string[] | undefined, form: RegExp): value is string {
  return typeof value === 'string' && form.test(value);
}

/** A list where names differ only in case: a reader that takes either one could take the one that is not signed. */
function lowerCased(headers: CallToVerify['headers']): CallToVerify['headers'] {
  const found = new Map<string, string | readonly string[]>();
  for (const [spelling, value] of Object.entries(headers)) {
    if (value === undefined) continue;
    const name = spelling.toLowerCase();
    const before = found.get(name);
    found.set(name, before === undefined ? value : [before, value].flat());
  }
  return Object.fromEntries(found);
}

function isMetadataName(name: string): boolean {
  return metadataName.test(name) && name !== metadataSignature;
}

/** The signed headers of a call; undefined if one of them is a list. */
function metadataOf(headers: CallToVerify['headers']): CallMetadata | undefined {
  const found: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || !isMetadataName(name)) continue;
    if (typeof value !== 'string') return undefined;
    found[name] = value;
  }
  return found;
}

function metadataContent(metadata: CallMetadata): Buffer {
  return Buffer.from(canonicalJson(metadata), 'utf8');
}

/** Signs with each secret: the signatures as a header lists them. */
function signers(secret: string | RotatingSecret, id: string, timestamp: string): ReturnType<typeof signer> {
  const secrets = typeof secret === 'string' ? [secret] : secret;
  const all = secrets.map((one) => signer(one, id, timestamp));
  return (content, prefix) => all.map((sign) => sign(content, prefix)).join(' ');
}

/**
 * Signs `{id}.{timestamp}.{content}` by Standard Webhooks. Metadata has a prefix if a body's message starts with 0x:
 * no payer can choose a body whose signature is valid for metadata.
 */
function signer(
  secret: string,
  id: string,
  timestamp: string,
): (content: Uint8Array, prefix?: string) => string {
  if (secret === '') throw new TypeError('the signing secret is empty');
  return signerWith(Buffer.from(secret, 'utf8'), id, timestamp);
}

function signerWith(key: Uint8Array, id: string, timestamp: string): ReturnType<typeof signer> {
  return (content, prefix = '') =>
    `v1,${createHmac('sha256', key).update(`${prefix}${id}.${timestamp}.`).update(content).digest('base64')}`;
}

/** A header may list several signatures, during a change of secrets; one of them must match. */
function isAmong(expected: string, list: string): boolean {
  return list.split(' ').some((candidate) => areEqualSecrets(candidate, expected));
}
