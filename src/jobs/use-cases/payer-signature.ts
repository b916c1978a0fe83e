import { hexToBytes } from 'viem/utils';
import { parseSignature, recoverSigner } from '../../base/values/ethereum-signature.ts';
import type { Address, Caip2, Hex } from '../../base/values/primitives.ts';
import { askContract } from './check-signature.ts';
import type { JobsContext } from './context.ts';

/** The longest signature of a contract wallet that is passed to its contract. */
const maxSignatureChars = 8_194;
const signatureForm = /^0x(?:[0-9a-f]{2})+$/i;

/** A signature that a payer is to have made over a digest (EIP-712) on the chain of its payment. */
export interface PayerSignature {
  readonly network: Caip2;
  readonly payer: Address;
  readonly digest: Hex;
  /** As the client sent it. */
  readonly signature: string;
}

export type PayerSignatureCheck =
  | { readonly kind: 'signed' | 'malformed' | 'not_signed' }
  /** The payer may be a contract, and its chain does not answer. */
  | { readonly kind: 'unavailable' };

/** Whether a signature is the payer's: by its key, or by its contract (ERC-1271). */
export async function checkPayerSignature(
  context: JobsContext,
  { network, payer, digest, signature }: PayerSignature,
): Promise<PayerSignatureCheck> {
  if (signature.length > maxSignatureChars || !signatureForm.test(signature)) return { kind: 'malformed' };
  const parsed = parseSignature(signature);
  if (parsed && recoverSigner(hexToBytes(digest), parsed) === payer) return { kind: 'signed' };
  const answer = await askContract(context, network, payer, digest, signature.toLowerCase() as Hex);
  switch (answer) {
    case 'valid':
      return { kind: 'signed' };
    case 'invalid':
    case 'no_rpc':
      return { kind: 'not_signed' };
    case 'unavailable':
      return { kind: 'unavailable' };
  }
}
