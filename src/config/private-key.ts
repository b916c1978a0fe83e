import { type Hex, isHex32 } from '../domain/values/primitives.ts';
import type { Reading } from './reading.ts';
import { readSecret, type SecretPlace } from './secrets.ts';

const curveOrder = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

/**
 * Fetches a private key of a chain's account. Undefined after a report; `missing` is said where neither place is named, and
 * no message ever holds the key.
 */
export async function readPrivateKey(
  place: Omit<SecretPlace, 'minChars'>,
  missing: string,
  reading: Reading,
): Promise<Hex | undefined> {
  const { at, envKey, envName, fileKey, filePath } = place;
  if (envName === undefined && filePath === undefined) reading.report.mistake([...at, envKey], missing);
  const text = (await readSecret({ ...place, minChars: 1 }, reading))?.toLowerCase();
  if (text === undefined) return undefined;
  if (isHex32(text) && BigInt(text) > 0n && BigInt(text) < curveOrder) return text;
  const key = envName === undefined ? fileKey : envKey;
  reading.report.mistake([...at, key], 'names no private key (0x and 64 hex digits)');
  return undefined;
}
