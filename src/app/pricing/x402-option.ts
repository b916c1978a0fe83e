import type { Quote } from '../../payments/rules/quote.ts';
import type { Hex } from '../../base/values/primitives.ts';
import type { PriceRequest } from './price-request.ts';

/** What makes a pricing engine sell by x402: a gateway that issues its quotes. */
export interface X402Option {
  /** Issues a quote. It is on record before this resolves. */
  issue(request: PriceRequest): Promise<X402Outcome>;
}

type X402Outcome =
  | {
      readonly kind: 'issued';
      readonly quote: Quote;
      readonly digest: Hex;
      /** Where exactly this quote is paid. */
      readonly endpoint: string;
    }
  /** A code of the gateway's refusals, and more about it. */
  | { readonly kind: 'refused'; readonly code: string; readonly reason?: string | undefined };

/** The refusals of jobs that x402 does not sell, or not now: their price is answered all the same. Others are about the gateway. */
export const notOffered: ReadonlySet<string> = new Set([
  'job_not_found',
  'x402_disabled',
  'no_current_rate',
  'facilitator_unavailable',
  'runner_unavailable',
]);
