import { timingSafeEqual } from 'node:crypto';

/**
 * Whether what somebody gives is the expected proof of a secret. The time that it takes shows nothing of the expected value but its
 * length, which is no secret. Texts are compared as UTF-8.
 */
export function areEqualSecrets(given: string | Uint8Array, expected: string | Uint8Array): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(expected)];
  return one.length === other.length && timingSafeEqual(one, other);
}
