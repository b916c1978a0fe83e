import { type SignatureFormat, signatureFormats } from '../values/signature-format.ts';
import type { RotatingSecret } from '../values/rotating-secret.ts';
import type { Hex } from '../values/primitives.ts';
import { isPrivateKey } from './private-key.ts';
import type { Reading } from './reading.ts';
import { rotatingSecret } from './secret-source.ts';
import { readRotatingSecret } from './secrets.ts';
import { readTable } from './table.ts';
import { oneOf } from './values.ts';

export const offerReceiptShape = {
  format: oneOf(signatureFormats).describe('Signature format'),
  key: rotatingSecret.describe(
    '32 bytes in hex for nothing else: a secp256k1 key for `eip712`, an Ed25519 seed for `jws`',
  ),
} as const;

/** How offers and receipts are signed. */
export interface OfferReceiptConfig {
  readonly format: SignatureFormat;
  /** 32 bytes each, in hex. The first one signs, and the DID document lists both. */
  readonly keys: RotatingSecret<Hex>;
}

/** Reads `[offer_receipt]` and its key; undefined if the table is missing, or after a report. */
export async function readOfferReceipt(
  raw: unknown,
  reading: Reading,
): Promise<OfferReceiptConfig | undefined> {
  if (raw === undefined) return undefined;
  const table = readTable(offerReceiptShape, raw, ['offer_receipt'], reading.report);
  const missing = 'is missing: say where it is; `openssl rand -hex 32` makes one';
  const texts = await readRotatingSecret(table, 'key', { minChars: 1, missing }, reading);
  const { format } = table.whole ?? {};
  if (!texts || format === undefined) return undefined;
  const [inUse, ...accepted] = texts.map((text): Hex => `0x${text.toLowerCase().replace(/^0x/, '')}`);
  const keys = [inUse, ...accepted].filter((key) => key !== undefined && isPrivateKey(key));
  if (inUse !== undefined && keys.length === texts.length) return { format, keys: [inUse, ...accepted] };
  const which = inUse !== undefined && isPrivateKey(inUse) ? 'second key' : 'key';
  reading.report.mistake(
    [...table.at, 'key'],
    `its ${which} is not a private key: 32 bytes in hex, not zero`,
  );
  return undefined;
}
