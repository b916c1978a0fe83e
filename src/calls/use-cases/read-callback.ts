import type { PaymentState } from '../../payments/rules/quote-state.ts';
import { callbackSecrets, type ReceiptKeys } from '../../payments/use-cases/receipt-keys.ts';
import { webhookSecretText } from '../../base/values/webhook-secret.ts';
import type { Hex } from '../../base/values/primitives.ts';
import type { LedgerDatabase } from '../../ledger/store/database.ts';
import { findCallback } from '../store/callbacks.ts';

// apart from what sends them: a receipt is also served by a gateway that loads nothing that asks a peer

/** The outcome of a payment's callback, for the payer's receipt; undefined if it has no callback. */
export async function readCallback(
  { db, receiptKeys }: { readonly db: LedgerDatabase; readonly receiptKeys: ReceiptKeys },
  digest: Hex,
  payment: PaymentState,
) {
  const { binding } = payment.recovered?.redelivery ?? payment;
  const found = binding === '' ? undefined : await findCallback(db, digest, binding as Hex);
  if (!found) return undefined;
  const { state, tries, lastFailure, at } = found;
  return {
    state,
    tries,
    ...(lastFailure !== undefined && { last_failure: lastFailure }),
    ...(at && { at: at.toISOString() }),
    secret: callbackSecretText(receiptKeys, digest),
  };
}

/** The secret that verifies the callbacks of a quote's calls, for its client. */
export function callbackSecretText(keys: ReceiptKeys, digest: Hex): string {
  return webhookSecretText(callbackSecrets(keys, digest)[0]);
}
