import type { DecodedPayment } from '../../payments/rules/decode-payment.ts';
import type { KnownPayment } from '../../payments/store/payment-lookup.ts';
import type { Job } from './catalog.ts';
import { type CheckedPayment, checkPayment } from './check-payment.ts';
import { checkRequest } from './check-request.ts';
import type { JobsContext } from './context.ts';
import { nowSecs } from '../../ledger/store/ledger.ts';
import type { BoundRequest } from './job-request.ts';
import { type MatchedPayment, matchQuote } from './match-quote.ts';
import type { JobRefusal } from './refusal.ts';
import { type PaymentStart, startPayment } from './start-payment.ts';

/** What became of a payment before anything was read from the ledger. */
export type UnreadStart =
  | (Extract<PaymentStart, { kind: 'started' }> & { readonly job: Job; readonly checked: CheckedPayment })
  /** It was refused: what counts is the look-up, which comes first for a known payment. */
  | JobRefusal
  /** The ledger has to be read first. */
  | { readonly kind: 'not_started' };

const notStarted = { kind: 'not_started' } as const;

/**
 * Starts a payment whose quote authenticates itself without reading the ledger: a look-up was a sixth of the database's work for a
 * payment. The claims of the start decide, as they do after a look-up. Only for the first payment that this process sees on the
 * quote: a repetition would be verified by the facilitator, and looked for on the chain, before its start loses.
 */
export async function startUnread(
  context: JobsContext,
  request: BoundRequest,
  decoded: DecodedPayment,
): Promise<UnreadStart> {
  const digest = decoded.terms?.quoteDigest;
  if (digest === undefined || !decoded.terms?.echo || context.seenQuotes.has(digest)) return notStarted;
  const fit = checkRequest(context, request);
  if (fit.kind === 'refusal') return notStarted;
  const matched = await matchUnread(context, request, fit.job, decoded);
  if (!matched || context.seenQuotes.has(digest)) return notStarted;
  context.seenQuotes.add(digest);
  const checked = await checkPayment(context, request, fit.job, matched);
  if (checked.kind === 'refusal') return checked;
  const start = await startPayment(context, request, fit.job, checked);
  switch (start.kind) {
    case 'started':
      return { ...start, job: fit.job, checked };
    case 'stream_moved':
      return notStarted;
    case 'refusal':
      return start;
  }
}

/**
 * The payment with the quote that it echoes. A summarised quote has no event yet; any other was recorded behind its answer, and has
 * no other event. Where that is wrong, the start meets another version of the quote's stream, and loses.
 */
async function matchUnread(
  context: JobsContext,
  request: BoundRequest,
  job: Job,
  decoded: DecodedPayment,
): Promise<MatchedPayment | undefined> {
  const unread: KnownPayment = {
    streams: [],
    quote: { events: [], nowSecs: nowSecs(context) },
    // the start compares it
    revokedBefore: 0,
  };
  const matched = await matchQuote(context, request, job, decoded, unread);
  if (matched.kind === 'refusal' || matched.late) return undefined;
  const { state } = matched;
  if (state.quote?.summarised) return { ...matched, isUnread: true };
  return { ...matched, isUnread: true, state: { ...state, version: 1 }, opening: [] };
}
