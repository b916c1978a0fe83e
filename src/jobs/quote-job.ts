import { randomBytes } from 'node:crypto';
import type { JobId } from '../domain/payments/job.ts';
import { type Quote, quoteDigest, quoteToData, zeroAddress, zeroHash } from '../domain/payments/quote.ts';
import type { PaymentRequired, Refused } from './answer.ts';
import { inputJson, type Job } from './catalog.ts';
import { type JobsContext, nowSecs } from './context.ts';
import { offerSecret } from './receipt-keys.ts';
import type { OfferRefusal } from './refusal.ts';

/** A quote for these terms that anyone may pay. Its random salt makes its digest unique. */
export function newQuote(
  terms: JobId & Pick<Job, 'priceWei' | 'options'>,
  issuedAt: number,
  ttlSecs: number,
): Quote {
  return {
    serviceId: terms.serviceId,
    jobIndex: terms.jobIndex,
    priceWei: terms.priceWei,
    options: terms.options,
    requester: zeroAddress,
    inputsHash: zeroHash,
    issuedAt,
    expiresAt: issuedAt + ttlSecs,
    salt: `0x${randomBytes(32).toString('hex')}`,
  };
}

/**
 * Issues a quote and answers with it. The quote is in the ledger before the client gets it. If the facilitator settles none
 * of the accepted tokens, there is nothing to offer and no quote is issued.
 */
export async function quoteJob(
  context: JobsContext,
  { job, code, reason }: Pick<OfferRefusal, 'job' | 'code' | 'reason'>,
): Promise<PaymentRequired | Refused> {
  const offered = context.offers.of(job.options);
  if (offered.length === 0) return { kind: 'refused', code: 'facilitator_unavailable' };
  const quote = newQuote({ ...job, options: offered }, nowSecs(context), context.settings.quoteTtlSecs);
  const digest = quoteDigest(quote);
  await context.lane.append({
    stream: digest,
    expect: 0,
    events: [{ type: 'quote_issued', data: quoteToData(quote) }],
  });
  const { serviceId, jobIndex, expiresAt, options } = quote;
  const secret = offerSecret(context.receiptKeys, digest);
  return {
    kind: 'payment_required',
    code,
    reason,
    quote: { serviceId, jobIndex, digest, secret, expiresAt, options, input: inputJson(job) },
  };
}
