import { randomBytes } from 'node:crypto';
import type { Hex } from '../domain/primitives.ts';
import { type Quote, quoteDigest, quoteToData, zeroAddress, zeroHash } from '../domain/quote.ts';
import type { PaymentRequired } from './answer.ts';
import type { Job } from './catalog.ts';
import { type Gateway, nowSecs } from './gateway.ts';

/**
 * Issues a quote and answers with it. The quote stands in the ledger before the client sees it: what can be paid is
 * on record.
 */
export async function quoteJob(
  gateway: Gateway,
  job: Job,
  code: PaymentRequired['code'],
  reason?: string,
): Promise<PaymentRequired> {
  const issuedAt = nowSecs(gateway);
  const quote: Quote = {
    serviceId: job.serviceId,
    jobIndex: job.jobIndex,
    priceWei: job.priceWei,
    options: job.options,
    requester: zeroAddress,
    inputsHash: zeroHash,
    issuedAt,
    expiresAt: issuedAt + gateway.x402.quoteTtlSecs,
    salt: `0x${randomBytes(32).toString('hex')}`,
  };
  const digest: Hex = quoteDigest(quote);
  await gateway.lane.append({
    stream: digest,
    expect: 0,
    events: [{ type: 'quote_issued', data: quoteToData(quote) }],
  });
  const { serviceId, jobIndex, expiresAt, options } = quote;
  return {
    kind: 'payment_required',
    code,
    reason,
    quote: { serviceId, jobIndex, digest, expiresAt, options },
  };
}
