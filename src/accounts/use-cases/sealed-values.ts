import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto';
import type { RotatingSecret } from '../../base/values/rotating-secret.ts';

const ivBytes = 12;
const tagBytes = 16;

/**
 * Encrypts bytes for the gateway itself, AES-256-GCM with a key of the secret.
 * @param purpose their kind and owner: opened with another one, they are refused
 */
export function seal([secret]: RotatingSecret, purpose: string, bytes: Buffer): Buffer {
  const iv = randomBytes(ivBytes);
  const cipher = createCipheriv('aes-256-gcm', keyOf(secret, purpose), iv);
  const sealed = Buffer.concat([cipher.update(bytes), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), sealed]);
}

/** What was sealed for this purpose, with any of the secrets; undefined for everything else. */
export function unseal(secrets: RotatingSecret, purpose: string, sealed: Buffer): Buffer | undefined {
  if (sealed.length < ivBytes + tagBytes) return undefined;
  const iv = sealed.subarray(0, ivBytes);
  const tag = sealed.subarray(ivBytes, ivBytes + tagBytes);
  for (const secret of secrets) {
    const cipher = createDecipheriv('aes-256-gcm', keyOf(secret, purpose), iv).setAuthTag(tag);
    try {
      return Buffer.concat([cipher.update(sealed.subarray(ivBytes + tagBytes)), cipher.final()]);
    } catch {
      // another secret may have sealed it
    }
  }
  return undefined;
}

function keyOf(secret: string, purpose: string): Buffer {
  return createHmac('sha256', secret).update(`seal:${purpose}`).digest();
}
