import { createHmac } from 'node:crypto';
import { areEqualSecrets } from '../../base/values/equal-secrets.ts';

/** One-time codes as authenticator apps make them: RFC 6238 with SHA-1, six digits and steps of 30 seconds. */
const stepSecs = 30;
const digits = 6;
/** A code of the step before or after is accepted: clocks differ. */
const window = 1;

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

/** RFC 4648 base32 without padding, as people type a secret. */
export function base32(bytes: Uint8Array): string {
  let bits = 0;
  let value = 0;
  let text = '';
  for (const byte of bytes) {
    value = ((value << 8) | byte) & 0xffff;
    for (bits += 8; bits >= 5; bits -= 5) text += alphabet[(value >> (bits - 5)) & 31] ?? '';
  }
  return bits === 0 ? text : text + (alphabet[(value << (5 - bits)) & 31] ?? '');
}

/** The bytes of a secret in base32; undefined if the text is not one. */
export function fromBase32(text: string): Buffer | undefined {
  const clean = text.replaceAll(/[\s=-]/g, '').toUpperCase();
  if (!/^[A-Z2-7]+$/.test(clean)) return undefined;
  const bytes: number[] = [];
  let bits = 0;
  let value = 0;
  for (const letter of clean) {
    value = ((value << 5) | alphabet.indexOf(letter)) & 0xffff;
    bits += 5;
    if (bits >= 8) bytes.push((value >> (bits -= 8)) & 255);
  }
  return Buffer.from(bytes);
}

/** The step of a time, in milliseconds since 1970. */
function stepAt(nowMs: number): number {
  return Math.floor(nowMs / 1_000 / stepSecs);
}

/** The code of a secret at a time. */
export function totpCode(secret: Buffer, nowMs: number): string {
  return codeOf(secret, stepAt(nowMs));
}

/** The step whose code this is, around a time; undefined if it is none of them. A step is to be accepted once. */
export function totpStep(secret: Buffer, code: string, nowMs: number): number | undefined {
  if (!/^\d{6}$/.test(code)) return undefined;
  const now = stepAt(nowMs);
  for (let step = now - window; step <= now + window; step++)
    if (areEqualSecrets(code, codeOf(secret, step))) return step;
  return undefined;
}

function codeOf(secret: Buffer, step: number): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(step));
  const mac = createHmac('sha1', secret).update(counter).digest();
  const at = (mac.at(-1) ?? 0) & 15;
  return String((mac.readUInt32BE(at) & 0x7fff_ffff) % 10 ** digits).padStart(digits, '0');
}

/** What an authenticator app reads, from a link or a picture. */
export function totpUri(secret: Buffer, issuer: string, name: string): string {
  const query = new URLSearchParams({ secret: base32(secret), issuer });
  return `otpauth://totp/${encodeURIComponent(`${issuer}:${name}`)}?${query.toString()}`;
}
