import { generateKeyPairSync, type KeyObject } from 'node:crypto';

/** A key that signs requests to a facilitator, `ID:KEY` as its portal gives one, and what verifies its signatures. */
export function facilitatorKey(id = 'an-id'): { readonly secret: string; readonly publicKey: KeyObject } {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const { d = '', x = '' } = privateKey.export({ format: 'jwk' });
  const bytes = Buffer.concat([Buffer.from(d, 'base64url'), Buffer.from(x, 'base64url')]);
  return { secret: `${id}:${bytes.toString('base64')}`, publicKey };
}
