import type { SpendAuthRefusal } from '../../../accounts/rules/spend/spend-auth.ts';

/** Why a spend authorization does not pay for a request. Nothing is charged for that request. */
export type SpendRefusal =
  /** The authorization, or its account, is at fault. `message` replaces the fault's general sentence by a more exact one. */
  | { readonly kind: 'invalid'; readonly fault: SpendAuthRefusal; readonly message?: string }
  /** The client's address sent too many credentials that failed. */
  | { readonly kind: 'too_many_failures' }
  /** It pays for this very request, which is being answered. */
  | { readonly kind: 'in_progress' }
  /** It has paid for this very request before. `chatId` only for a client that has shown that the request was its own. */
  | { readonly kind: 'already_paid'; readonly chatId: string | undefined }
  /** It may be public, and the client has not shown that the request which it is bound to is its own. */
  | { readonly kind: 'bound' }
  | { readonly kind: 'chain_unavailable' }
  /** Landing it would cost more gas than the operator pays for its amount. */
  | { readonly kind: 'gas_too_expensive' }
  /** Too many spends of the account wait for their turn. */
  | { readonly kind: 'queue_full' }
  /** The ledger takes no more commands now. */
  | { readonly kind: 'lane_full' }
  /** The client closed its connection. */
  | { readonly kind: 'client_left' };

export function invalidSpend(fault: SpendAuthRefusal, message?: string): SpendRefusal {
  return { kind: 'invalid', fault, ...(message === undefined ? {} : { message }) };
}
