import { isSignedByPayer, type SignedPayment } from '../domain/payments/payment.ts';
import { schemes } from '../domain/payments/schemes/schemes.ts';
import type { JobsContext } from './context.ts';

export type SignatureCheck =
  /** By an ordinary account's key, or for its contract (ERC-1271). */
  | { readonly kind: 'signed'; readonly by: 'key' | 'contract' }
  | { readonly kind: 'not_signed' }
  /** The payer may be a contract, and no RPC of its chain is configured: only the facilitator can tell. */
  | { readonly kind: 'unchecked' }
  /** The payer may be a contract, and its chain does not answer. */
  | { readonly kind: 'unavailable' };

/**
 * Whether the payer signed this payment, before the facilitator is asked: a payment that no payer signed costs a stranger
 * nothing, and a facilitator may fail at it. The length of the signature was checked before.
 */
export async function checkSignature(
  { chains, contractSignatures, log }: JobsContext,
  payment: SignedPayment,
): Promise<SignatureCheck> {
  if (isSignedByPayer(payment)) return { kind: 'signed', by: 'key' };
  const { network, payer, signature, transferMethod } = payment;
  const rpcUrl = chains.get(network)?.rpcUrl;
  if (rpcUrl === undefined) return { kind: 'unchecked' };
  const digest = schemes[transferMethod].digest(payment);
  const answer = await contractSignatures.isValidSignature({ rpcUrl, account: payer, digest, signature });
  if (answer.kind === 'answer')
    return answer.valid ? { kind: 'signed', by: 'contract' } : { kind: 'not_signed' };
  log.warn({ payer, cause: answer.cause }, 'the signature of a payer could not be checked');
  return { kind: 'unavailable' };
}
