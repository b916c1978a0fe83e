import { isSignedByPayer, type SignedPayment } from '../../payments/rules/payment.ts';
import { schemes } from '../../payments/rules/schemes/schemes.ts';
import type { Address, Caip2, Hex } from '../../base/values/primitives.ts';
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
export async function checkSignature(context: JobsContext, payment: SignedPayment): Promise<SignatureCheck> {
  if (isSignedByPayer(payment)) return { kind: 'signed', by: 'key' };
  const { network, payer, signature, transferMethod } = payment;
  const digest = schemes[transferMethod].digest(payment);
  switch (await askContract(context, network, payer, digest, signature)) {
    case 'valid':
      return { kind: 'signed', by: 'contract' };
    case 'invalid':
      return { kind: 'not_signed' };
    case 'no_rpc':
      return { kind: 'unchecked' };
    case 'unavailable':
      return { kind: 'unavailable' };
  }
}

/** What the payer's contract says of its signature over a digest (ERC-1271). */
export async function askContract(
  { chains, contractSignatures, log }: JobsContext,
  network: Caip2,
  payer: Address,
  digest: Hex,
  signature: Hex,
): Promise<'valid' | 'invalid' | 'no_rpc' | 'unavailable'> {
  const rpcUrl = chains.get(network)?.rpcUrl;
  if (rpcUrl === undefined) return 'no_rpc';
  const answer = await contractSignatures.isValidSignature({ rpcUrl, account: payer, digest, signature });
  if (answer.kind === 'answer') return answer.valid ? 'valid' : 'invalid';
  log.warn(
    { account: payer, cause: answer.cause },
    'the signature of a contract account could not be checked: its request was refused',
  );
  return 'unavailable';
}
