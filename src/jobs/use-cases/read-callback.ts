import type { PaymentState } from '../../payments/rules/quote-state.ts';
import type { Hex } from '../../base/values/primitives.ts';
import { webhookSecretText } from '../../base/values/webhook-secret.ts';
import { findCallback } from '../../calls/store/callbacks.ts';
import type { JobsContext } from './context.ts';
import { callbackSecrets } from './receipt-keys.ts';

/** What became of the callback of a payment, for the receipt of whoever paid; undefined where it has none. */
export async function readCallback(
  { db, receiptKeys }: Pick<JobsContext, 'db' | 'receiptKeys'>,
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
export function callbackSecretText(keys: JobsContext['receiptKeys'], digest: Hex): string {
  return webhookSecretText(callbackSecrets(keys, digest)[0]);
}
