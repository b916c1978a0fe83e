import type { JobId } from '../../base/values/job.ts';
import { type Quote, quoteDigest } from '../../payments/rules/quote.ts';
import { quoteTokenParameter, writeQuoteToken } from '../../payments/rules/quote-token.ts';
import { type Address, type Hex, isHex32, parseAddress } from '../../base/values/primitives.ts';
import { late, within } from '../../base/runtime/within.ts';
import { LaneFullError, type Lane } from '../../ledger/store/lane.ts';
import { ledgerRefusalOf } from '../../ledger/store/ledger-refusal.ts';
import type { Refused } from './answer.ts';
import { type Catalog, findJob, jobUrl } from './catalog.ts';
import type { EventAllowance } from '../../ledger/store/event-allowance.ts';
import { nowSecs } from '../../ledger/store/ledger.ts';
import { newQuote, optionsToQuote, recordQuote, type TermsPorts } from './quote-job.ts';
import { quoteTokenProof } from '../../payments/use-cases/receipt-keys.ts';
import { isRunnerAway, type RunnerSilence } from './capacity.ts';

/** What a quote is asked for, and whom and what it is bound to. */
export interface QuoteRequest extends JobId {
  /** The only address that may pay it; the zero address for any. */
  readonly requester: Address;
  /** keccak256 of the bytes of the only body that it may be paid for; zero for any. */
  readonly inputsHash: Hex;
}

/** A quote that is in the ledger. */
export interface IssuedQuote {
  readonly kind: 'issued';
  readonly quote: Quote;
  readonly digest: Hex;
  /** Where it is paid over x402: the job's address, with the quote's token. As secret as an offer. */
  readonly endpoint: string;
}

/** Issues quotes of a running gateway. */
export interface QuoteIssuer {
  /** @throws TypeError for a requester or a hash that is malformed */
  issue(request: QuoteRequest): Promise<IssuedQuote | Refused>;
}

export interface IssuePorts extends TermsPorts {
  readonly catalog: Catalog;
  /** How many quotes a pricing service may issue, each of which is recorded. */
  readonly pricingQuotes: EventAllowance;
  readonly publicUrl: () => string;
  readonly runnerSilence: RunnerSilence;
}

/** How long the ledger may take: a client that asks for a price does not wait for a database that is down. */
const mostWaitMs = 5_000;

/**
 * Issues a quote for a pricing service. It is in the ledger before it is returned, never summarised, and every gateway of the ledger
 * takes its payment. How many are issued a second is bounded over all gateways, since the ledger keeps each for good.
 */
export async function issueQuote(
  context: IssuePorts,
  { serviceId, jobIndex, ...bound }: QuoteRequest,
): Promise<IssuedQuote | Refused> {
  const requester = parseAddress(bound.requester);
  const inputsHash = bound.inputsHash.toLowerCase();
  if (!requester) throw new TypeError('the requester of a quote is not an address');
  if (!isHex32(inputsHash)) throw new TypeError('the inputs hash of a quote is not 32 bytes');
  const job = findJob(context.catalog, { serviceId, jobIndex });
  if (!job) return { kind: 'refused', code: 'job_not_found' };
  if (!job.isSold) return { kind: 'refused', code: 'x402_disabled' };
  if (isRunnerAway(context, job)) return { kind: 'refused', code: 'runner_unavailable' };
  const offered = optionsToQuote(context, job);
  if (offered.kind === 'refused') return offered;
  if (!context.pricingQuotes.take())
    return { kind: 'refused', code: 'overloaded', reason: 'quote_allowance' };
  const terms = { ...job, options: offered.options, requester, inputsHash, source: 'pricing' } as const;
  const quote = newQuote(terms, nowSecs(context), context.settings.quoteTtlSecs);
  const digest = quoteDigest(quote);
  const obstacle = await record(context, quote, digest);
  if (obstacle) return obstacle;
  const token = writeQuoteToken(quote, quoteTokenProof(context.receiptKeys, digest));
  const endpoint = `${jobUrl(context.publicUrl(), job)}?${quoteTokenParameter}=${token}`;
  return { kind: 'issued', quote, digest, endpoint };
}

/** Records a quote; the refusal if the ledger does not take it now. A quote that is recorded after that is never paid. */
async function record(
  context: { readonly lane: Lane },
  quote: Quote,
  digest: Hex,
): Promise<Refused | undefined> {
  try {
    const recorded = await within(mostWaitMs, recordQuote(context, quote, digest));
    return recorded === late
      ? { kind: 'refused', code: 'ledger_unavailable', reason: 'ledger_slow' }
      : undefined;
  } catch (error) {
    const code = ledgerRefusalOf(error);
    if (!code) throw error;
    return { kind: 'refused', code, ...(error instanceof LaneFullError ? { reason: 'lane_full' } : {}) };
  }
}
