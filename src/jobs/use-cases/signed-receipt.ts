import { didOf } from '../../payments/rules/offer-key.ts';
import type { Signed } from '../../payments/rules/offer-receipt.ts';
import type { JobId } from '../../base/values/job.ts';
import type { paymentSummary } from '../../payments/rules/payment.ts';
import { jobUrl } from './catalog.ts';
import type { JobsContext } from './context.ts';

/**
 * The signed receipt of a settled payment, for others than its payer. It says when the payment was settled, not when it is asked for: so
 * a repeated request gets the same receipt, as long as key and public address are the same.
 * @param settledAt RFC 3339
 */
export function signedReceipt(
  { offerKeys, publicUrl, settings }: Pick<JobsContext, 'offerKeys' | 'publicUrl' | 'settings'>,
  job: JobId,
  { network, payer, transaction }: ReturnType<typeof paymentSummary>,
  settledAt: string,
): Signed | undefined {
  if (!offerKeys) return undefined;
  const [key] = offerKeys;
  const origin = publicUrl();
  const payload = {
    version: 1,
    network,
    resourceUrl: jobUrl(origin, job),
    payer,
    issuedAt: Math.floor(Date.parse(settledAt) / 1_000),
    ...(settings.offerReceipt?.receiptTransaction ? { transaction } : {}),
  } as const;
  return key.sign({ kind: 'receipt', payload }, didOf(origin));
}
