import { keccak256 } from '../../base/values/keccak.ts';
import type { Hex } from '../../base/values/primitives.ts';
import { type Quote, zeroAddress, zeroHash } from './quote.ts';

/** Who alone may pay a quote, and for which body alone; zero for any. */
export type QuoteBinding = Pick<Quote, 'requester' | 'inputsHash'>;

export type BindingCheck =
  /** `bodyKeccak256`: of the body, where the quote is bound to one. */
  | { readonly kind: 'kept'; readonly bodyKeccak256: Hex | undefined }
  | { readonly kind: 'broken'; readonly reason: 'requester_mismatch' | 'inputs_hash_mismatch' };

/**
 * Whether a quote may be paid by this payer for this body.
 * @param payer in lower case; undefined where it is not known yet
 */
export function checkBinding(
  { requester, inputsHash }: QuoteBinding,
  payer: string | undefined,
  body: Buffer,
): BindingCheck {
  if (payer !== undefined && requester !== zeroAddress && requester !== payer)
    return { kind: 'broken', reason: 'requester_mismatch' };
  if (inputsHash === zeroHash) return { kind: 'kept', bodyKeccak256: undefined };
  const bodyKeccak256: Hex = `0x${Buffer.from(keccak256(body)).toString('hex')}`;
  return bodyKeccak256 === inputsHash
    ? { kind: 'kept', bodyKeccak256 }
    : { kind: 'broken', reason: 'inputs_hash_mismatch' };
}
