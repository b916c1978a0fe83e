import { type Hex, isHex32 } from '../values/primitives.ts';
import type { Reading } from './reading.ts';
import { readSecret, type SecretName } from './secrets.ts';
import type { Shape, Table } from './table.ts';

const curveOrder = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

/**
 * Reads the private key of an account on a chain. Undefined after a report; `missing` is the message where
 * the key is missing. No message ever contains the private key.
 */
export async function readPrivateKey<S extends Shape>(
  table: Table<S>,
  name: SecretName<S>,
  missing: string | undefined,
  reading: Reading,
): Promise<Hex | undefined> {
  const text = (
    await readSecret(table, name, { minChars: 1, ...(missing !== undefined && { missing }) }, reading)
  )?.toLowerCase();
  if (text === undefined) return undefined;
  if (reading.skippedSecrets) return `0x${text}`;
  if (isPrivateKey(text)) return text;
  reading.report.mistake([...table.at, name], 'names no private key (0x and 64 hex digits)');
  return undefined;
}

/** Lower-cased, with 0x. */
export function isPrivateKey(text: string): text is Hex {
  return isHex32(text) && BigInt(text) > 0n && BigInt(text) < curveOrder;
}
