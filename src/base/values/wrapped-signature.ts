import { decodeAbiParameters, encodeAbiParameters } from 'viem/utils';
import { type Address, type Hex, parseAddress } from './primitives.ts';

/** The end of a signature that is wrapped for a wallet which may not be deployed yet (ERC-6492). */
const suffix = '6492'.repeat(16);
const parts = [{ type: 'address' }, { type: 'bytes' }, { type: 'bytes' }] as const;
const zeroAddress = `0x${'0'.repeat(40)}`;

/** A contract wallet's signature, wrapped in the call that deploys the wallet (ERC-6492). */
export interface WrappedSignature {
  readonly kind: 'wrapped';
  /** Lower case, not zero. */
  readonly factory: Address;
  /** The signature inside, which the wallet's contract checks. Not wrapped again. */
  readonly signature: Hex;
}

/** Whether a signature has the form of a wrapped one; `malformed` if it is one in name only. */
export type SignatureForm = WrappedSignature | { readonly kind: 'plain' } | { readonly kind: 'malformed' };

/**
 * Reads a signature in lower-case hexadecimal digits. Of a wrapped one only the canonical encoding is read, so that gateway,
 * facilitator and chain find the same factory in it, however lenient their decoders are.
 */
export function readSignatureForm(signature: Hex): SignatureForm {
  if (!signature.endsWith(suffix)) return { kind: 'plain' };
  const encoded: Hex = `0x${signature.slice(2, -suffix.length)}`;
  try {
    const decoded = decodeAbiParameters(parts, encoded);
    const factory = parseAddress(decoded[0]);
    const inner = decoded[2];
    const isCanonical = encodeAbiParameters(parts, decoded) === encoded;
    if (isCanonical && factory && factory !== zeroAddress && !inner.endsWith(suffix))
      return { kind: 'wrapped', factory, signature: inner };
  } catch {
    // not three values in ABI
  }
  return { kind: 'malformed' };
}
