import secp256k1 from 'secp256k1';
import { hexToBytes } from 'viem/utils';
import { accountOf, recoverSigner } from '../../base/values/ethereum-signature.ts';
import { type Address, isHex32, parseAddress } from '../../base/values/primitives.ts';
import { late, within } from '../../base/runtime/within.ts';

/** Signs quotes as the operator. What it returns is checked: a signature of another account is never passed on. */
export interface QuoteSigner {
  /** The operator's account. */
  readonly address: string;
  /** Signs a digest of 32 bytes, without a prefix. Returns r and s, with or without v: 64 or 65 bytes. */
  sign(digest: Uint8Array): Promise<Uint8Array>;
}

export type SignatureOutcome =
  | { readonly kind: 'signed'; readonly signature: Uint8Array }
  /** The signer failed, was late, or signed as another account. The cause is for the operator's log. */
  | { readonly kind: 'unavailable'; readonly cause: string };

/** The operator whose signatures are checked. */
export interface Operator {
  readonly address: Address;
  sign(digest: Uint8Array): Promise<SignatureOutcome>;
}

/**
 * A signer with the operator's private key, 0x and 64 hex digits.
 * @throws if the text is not a private key; the message does not contain it
 */
export function keySigner(privateKey: string): QuoteSigner {
  const text = privateKey.trim().toLowerCase();
  const key = isHex32(text) ? hexToBytes(text) : undefined;
  if (!key || !secp256k1.privateKeyVerify(key))
    throw new TypeError('the signer has no private key (0x and 64 hex digits)');
  return {
    address: accountOf(secp256k1.publicKeyCreate(key, false)),
    sign: (digest) => {
      const { signature, recid } = secp256k1.ecdsaSign(digest, key);
      return Promise.resolve(Buffer.concat([signature, Buffer.of(27 + recid)]));
    },
  };
}

/**
 * The operator of a signer.
 * @param timeoutMs how long a signature may take, for a signer that asks a KMS
 * @throws if the signer names no address
 */
export function operatorOf(signer: QuoteSigner, timeoutMs: number): Operator {
  const address = parseAddress(signer.address);
  if (address === undefined)
    throw new TypeError('the address of the signer is not an address (0x and 40 hex digits)');
  return {
    address,
    async sign(digest) {
      try {
        const signed = await within(timeoutMs, signer.sign(digest));
        if (signed === late) return { kind: 'unavailable', cause: `no signature in ${timeoutMs} ms` };
        const signature = canonicalSignature(address, digest, signed);
        if (signature) return { kind: 'signed', signature };
        return { kind: 'unavailable', cause: `the signature is not one of ${address}` };
      } catch (error) {
        return { kind: 'unavailable', cause: error instanceof Error ? error.message : String(error) };
      }
    },
  };
}

/**
 * r, s and v with the lower s, which is the one that contracts accept, and the v that recovers the account: a KMS returns either s, and
 * no v. Undefined if the bytes are not a signature of this account.
 * @throws if r or s is not a number of the curve
 */
function canonicalSignature(
  address: Address,
  digest: Uint8Array,
  signed: Uint8Array,
): Uint8Array | undefined {
  if (!(signed instanceof Uint8Array) || (signed.length !== 64 && signed.length !== 65)) return undefined;
  const compact = secp256k1.signatureNormalize(Uint8Array.from(signed.subarray(0, 64)));
  // the signer's v is not believed; if it is right, one recovery is enough
  const isOdd = signed[64] === 28 || signed[64] === 1;
  for (const recovery of isOdd ? ([1, 0] as const) : ([0, 1] as const))
    if (recoverSigner(digest, { compact, recovery }) === address)
      return Buffer.concat([compact, Buffer.of(27 + recovery)]);
  return undefined;
}
