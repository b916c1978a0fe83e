import { createHmac, timingSafeEqual } from 'node:crypto';
import { jsonValue } from '../bounded-json.ts';
import { canonicalJson, type CanonicalValue } from '../canonical-json.ts';
import { isObject } from '../json-object.ts';
import type { RotatingSecret } from '../rotating-secret.ts';

/** What a message is for: one kind can never be taken for another. */
export type MessagePurpose = 'result' | 'lease' | 'lease-answer';

/** Facts and bytes, signed with a runner's token: others can write to the broker too. */
export interface SealedMessage {
  readonly facts: Readonly<Record<string, unknown>>;
  readonly body: Buffer;
}

const lineEnd = 0x0a;
const maxHeadBytes = 1_000;

/**
 * Two lines, the signatures and the facts as JSON, then the body. With several secrets the first line lists the signature of each.
 * @throws TypeError for an empty secret
 */
export function sealMessage(
  purpose: MessagePurpose,
  secret: string | RotatingSecret,
  facts: Readonly<Record<string, CanonicalValue>>,
  body: Uint8Array = Buffer.alloc(0),
): Buffer {
  const content = Buffer.concat([Buffer.from(`${canonicalJson(facts)}\n`, 'utf8'), body]);
  const secrets = typeof secret === 'string' ? [secret] : secret;
  const signatures = secrets.map((one) => signatureOf(purpose, one, content)).join(' ');
  return Buffer.concat([Buffer.from(`${signatures}\n`, 'utf8'), content]);
}

/** Undefined for a message that no holder of one of the secrets sealed for this purpose. */
export function openMessage(
  purpose: MessagePurpose,
  secret: string | RotatingSecret,
  message: Uint8Array,
): SealedMessage | undefined {
  const bytes = Buffer.from(message.buffer, message.byteOffset, message.byteLength);
  const headEnd = bytes.subarray(0, maxHeadBytes).indexOf(lineEnd);
  if (headEnd < 0) return undefined;
  const given = bytes.toString('utf8', 0, headEnd).split(' ');
  const content = bytes.subarray(headEnd + 1);
  const secrets = typeof secret === 'string' ? [secret] : secret;
  if (
    !secrets.some((one) => given.some((signature) => isSame(signature, signatureOf(purpose, one, content))))
  )
    return undefined;
  const factsEnd = content.indexOf(lineEnd);
  if (factsEnd < 0) return undefined;
  const facts = parseFacts(content.toString('utf8', 0, factsEnd));
  return facts && { facts, body: content.subarray(factsEnd + 1) };
}

/** The signed text begins with the purpose: a webhook's begins with its id, `0x…`, or with `metadata.0x…`. */
function signatureOf(purpose: MessagePurpose, secret: string, content: Uint8Array): string {
  if (secret === '') throw new TypeError('the signing secret is empty');
  return `v1,${createHmac('sha256', Buffer.from(secret, 'utf8')).update(`${purpose}.`).update(content).digest('base64')}`;
}

function isSame(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}

function parseFacts(text: string): SealedMessage['facts'] | undefined {
  const facts = jsonValue(text);
  return isObject(facts) ? facts : undefined;
}
