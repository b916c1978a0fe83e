import { timingSafeEqual } from 'node:crypto';

/**
 * Whether a given text is the expected proof of a secret. The time that it takes shows nothing of the expected value but its
 * length, which is not secret. Texts are compared as UTF-8.
 */
export function areEqualSecrets(given: string | Uint8Array, expected: string | Uint8Array): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(expected)];
  return one.length === other.length && timingSafeEqual(one, other);
}
