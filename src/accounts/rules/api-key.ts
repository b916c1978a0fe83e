import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** How many random bytes make a key: 192 bits. */
export const apiKeyRandomBytes = 24;

const prefix = 'sk-net-';
const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** The fewest base62 digits that hold 192 bits, and 32. */
const secretDigits = 33;
const checksumDigits = 6;
const shape = new RegExp(`^${prefix}[0-9A-Za-z]{${secretDigits + checksumDigits}}$`);

/**
 * A key: `sk-net-`, the random bytes in base62, and the CRC32 of all that in base62. The checksum lets mistyped keys be
 * refused without a query and leaked ones be found; it proves nothing.
 */
export function newApiKey(random: Buffer): string {
  if (random.length !== apiKeyRandomBytes)
    throw new RangeError(`a key is made of ${apiKeyRandomBytes} random bytes`);
  const body = prefix + base62(BigInt(`0x${random.toString('hex')}`), secretDigits);
  return body + checksumOf(body);
}

/** Whether a text has the form of a key and its checksum. */
export function isApiKey(text: string): boolean {
  return shape.test(text) && checksumOf(text.slice(0, -checksumDigits)) === text.slice(-checksumDigits);
}

/** The form of a key's label: one printable line. */
export const apiKeyNamePattern = /^[^\p{C}\p{Zl}\p{Zp}]{1,64}$/u;

/** The SHA-256 of a key as 64 hex digits, stored instead of it. */
export function apiKeyHash(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function checksumOf(body: string): string {
  return base62(BigInt(crc32(body)), checksumDigits);
}

function base62(value: bigint, digits: number): string {
  let text = '';
  for (let rest = value; text.length < digits; rest /= 62n) text = alphabet.charAt(Number(rest % 62n)) + text;
  return text;
}
