import { checkBinding } from '../../payments/rules/quote-binding.ts';
import { foldQuote, isOpen } from '../../payments/rules/quote-state.ts';
import { type NamedQuote, readQuoteToken } from '../../payments/rules/quote-token.ts';
import { readRevocation } from '../store/quote-revocations.ts';
import { readStream } from '../../ledger/store/streams.ts';
import type { Job } from './catalog.ts';
import type { JobsContext } from './context.ts';
import type { WholeRequest } from './job-request.ts';
import { isQuoteTokenProof } from '../../payments/use-cases/receipt-keys.ts';

/** Why the quote that a token names is not offered. */
type NotOffered =
  | 'malformed_quote_token'
  | 'repeated_quote_token'
  | 'unknown_quote'
  | 'quote_of_another_job'
  | 'matches_no_option'
  | 'inputs_hash_mismatch'
  | 'quote_revoked'
  | 'quote_expired'
  | 'quote_ended';

/**
 * The quote that a token in the address of a request without a payment names, if it can be paid now by this request. The ledger is
 * asked only for a token that a gateway of this ledger made.
 * @param given the query parameter as it came: a list where it is repeated
 */
export async function findIssuedQuote(
  { pool, receiptKeys, log }: JobsContext,
  job: Job,
  given: string | readonly string[],
  { body }: WholeRequest,
): Promise<NamedQuote | NotOffered> {
  if (typeof given !== 'string') return 'repeated_quote_token';
  const token = readQuoteToken(given);
  if (!token) return 'malformed_quote_token';
  const { quote, digest, proof } = token;
  if (!isQuoteTokenProof(receiptKeys, digest, proof, log)) return 'unknown_quote';
  if (quote.serviceId !== job.serviceId || quote.jobIndex !== job.jobIndex) return 'quote_of_another_job';
  // a quote from before the job sold credit, or from when it did
  if (quote.options.some(({ creditMicros }) => job.isTopUp !== (creditMicros !== undefined)))
    return 'matches_no_option';
  // its payer is not known yet
  if (checkBinding(quote, undefined, body).kind === 'broken') return 'inputs_hash_mismatch';
  const [{ events, nowSecs }, { beforeSecs }] = await Promise.all([
    readStream(pool, digest),
    readRevocation(pool),
  ]);
  const state = foldQuote(events);
  if (!state.quote) return 'unknown_quote';
  if (quote.issuedAt < beforeSecs) return 'quote_revoked';
  if (quote.expiresAt <= nowSecs) return 'quote_expired';
  return isOpen(state, nowSecs) ? { quote, digest } : 'quote_ended';
}
