import { createHash, sign } from 'node:crypto';
import secp256k1 from 'secp256k1';
import { canonicalJson } from '../../base/values/canonical-json.ts';
import { ed25519KeysOf } from '../../base/values/ed25519.ts';
import { accountOf } from '../../base/values/ethereum-signature.ts';
import { mapSecrets, type RotatingSecret } from '../../base/values/rotating-secret.ts';
import { type Signable, type Signed, typedDataDigest } from './offer-receipt.ts';
import { type SignatureFormat } from '../../base/values/signature-format.ts';

/** A key that signs offers and receipts. It is never in the ledger, and moves no money. */
export interface OfferKey {
  /** Deterministic: the same payload has the same signature. */
  sign(signable: Signable, did: string): Signed;
  /** Its public half as a DID document lists it. The first one is the key of the signatures. */
  methods(did: string): readonly VerificationMethod[];
}

export interface VerificationMethod {
  readonly id: string;
  readonly type: string;
  readonly controller: string;
  readonly publicKeyJwk?: Readonly<Record<string, string>>;
  readonly blockchainAccountId?: string;
}

/** @param secrets 32 bytes each: keys of secp256k1 for `eip712`, seeds of Ed25519 for `jws` */
export function offerKeysOf(
  format: SignatureFormat,
  secrets: RotatingSecret<Uint8Array>,
): RotatingSecret<OfferKey> {
  return mapSecrets(secrets, format === 'eip712' ? ethereumKey : edwardsKey);
}

/** The DID of an address, whose document is at `/.well-known/did.json` of its host. */
export function didOf(publicUrl: string): string {
  return `did:web:${encodeURIComponent(new URL(publicUrl).host)}`;
}

/** The DID document of the keys: the first one signs, and what the others have signed can still be checked. */
export function didDocument(publicUrl: string, keys: RotatingSecret<OfferKey>) {
  const did = didOf(publicUrl);
  const methods = keys.flatMap((key) => key.methods(did));
  return {
    '@context': [
      'https://www.w3.org/ns/did/v1',
      'https://w3id.org/security/suites/jws-2020/v1',
      'https://w3id.org/security/suites/secp256k1recovery-2020/v2',
    ],
    id: did,
    verificationMethod: methods,
    assertionMethod: methods.map(({ id }) => id),
  };
}

function ethereumKey(secret: Uint8Array): OfferKey {
  const point = secp256k1.publicKeyCreate(secret, false);
  const jwk = {
    kty: 'EC',
    crv: 'secp256k1',
    x: base64url(point.subarray(1, 33)),
    y: base64url(point.subarray(33)),
  };
  const account = accountOf(point);
  return {
    sign(signable) {
      const { signature, recid } = secp256k1.ecdsaSign(typedDataDigest(signable), secret);
      const text = `0x${Buffer.concat([signature, Buffer.of(27 + recid)]).toString('hex')}`;
      const { kind, payload } = signable;
      // typed data has all of its fields
      const whole = kind === 'receipt' ? { ...payload, transaction: payload.transaction ?? '' } : payload;
      return { format: 'eip712', payload: whole, signature: text };
    },
    methods: (did) => [
      jwkMethod(did, jwk),
      {
        id: `${did}#${account}`,
        type: 'EcdsaSecp256k1RecoveryMethod2020',
        controller: did,
        blockchainAccountId: `eip155:1:${account}`,
      },
    ],
  };
}

function edwardsKey(seed: Uint8Array): OfferKey {
  const { privateKey, publicKey } = ed25519KeysOf(seed);
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: base64url(publicKey) };
  return {
    sign({ payload }, did) {
      const header = JSON.stringify({ alg: 'EdDSA', kid: jwkMethod(did, jwk).id });
      const signed = `${base64url(Buffer.from(header))}.${base64url(Buffer.from(canonicalJson(payload)))}`;
      return {
        format: 'jws',
        signature: `${signed}.${base64url(sign(null, Buffer.from(signed), privateKey))}`,
      };
    },
    methods: (did) => [jwkMethod(did, jwk)],
  };
}

/** Named by its key, so that another key has another name. */
function jwkMethod(did: string, jwk: Readonly<Record<string, string>>): VerificationMethod {
  const thumbprint = createHash('sha256').update(canonicalJson(jwk)).digest('base64url');
  return {
    id: `${did}#${thumbprint.slice(0, 16)}`,
    type: 'JsonWebKey2020',
    controller: did,
    publicKeyJwk: jwk,
  };
}

function base64url(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64url');
}
