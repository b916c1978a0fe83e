import type { DecodedPayment } from '../../payments/rules/decode-payment.ts';
import {
  isSignedByPayer,
  type PaymentToken,
  readSignedPayment,
  tokensOfPayment,
} from '../../payments/rules/payment.ts';
import { checkSignature } from './check-signature.ts';
import type { JobsContext } from './context.ts';

/**
 * The token that a payment is in; undefined where it is none of these. A version 1 payment names only its network: where that has several
 * tokens, the payer's signature tells, and for a contract account its contract does, so that the chain is asked. The first one that
 * it may be where none can be told: the checks of the payment refuse it.
 */
export async function findSignedToken<T extends PaymentToken>(
  context: JobsContext,
  decoded: DecodedPayment,
  tokens: readonly T[],
): Promise<T | undefined> {
  const candidates = tokensOfPayment(decoded, tokens);
  if (candidates.length < 2) return candidates[0];
  const read = candidates.flatMap((token) => {
    const payment = readSignedPayment(decoded, token);
    return payment?.payTo === token.payTo ? [{ token, payment }] : [];
  });
  const byKey = read.find(({ payment }, _, { length }) => length === 1 || isSignedByPayer(payment));
  if (byKey) return byKey.token;
  for (const { token, payment } of read)
    if ((await checkSignature(context, payment)).kind !== 'not_signed') return token;
  return candidates[0];
}
