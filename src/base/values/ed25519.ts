import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';

/** A pair of Ed25519 keys. */
export interface Ed25519Keys {
  readonly privateKey: KeyObject;
  /** 32 bytes. */
  readonly publicKey: Buffer;
}

const pkcs8Prefix = Buffer.from('302e020100300506032b657004220420', 'hex');
const spkiPrefix = Buffer.from('302a300506032b6570032100', 'hex');

/** The pair of a seed of 32 bytes. */
export function ed25519KeysOf(seed: Uint8Array): Ed25519Keys {
  const privateKey = createPrivateKey({
    key: Buffer.concat([pkcs8Prefix, seed]),
    format: 'der',
    type: 'pkcs8',
  });
  const spki = createPublicKey(privateKey).export({ format: 'der', type: 'spki' });
  return { privateKey, publicKey: spki.subarray(spkiPrefix.length) };
}

/** The key of 32 bytes, to verify with. */
export function ed25519PublicKey(bytes: Uint8Array): KeyObject {
  return createPublicKey({ key: Buffer.concat([spkiPrefix, bytes]), format: 'der', type: 'spki' });
}
