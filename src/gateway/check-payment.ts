import type { EventData } from '../domain/event.ts';
import {
  checkPayment,
  type DecodedPayment,
  isSignedByPayer,
  matchOption,
  type PaymentWindow,
  type SignedPayment,
  timeError,
} from '../domain/payment.ts';
import type { Hex } from '../domain/primitives.ts';
import { optionFromJson } from '../domain/quote.ts';
import { foldStory, isOpen, type Story } from '../domain/story.ts';
import { facilitatorRequest } from '../domain/x402.ts';
import { readStream } from '../store/streams.ts';
import { payerAsker } from './budget.ts';
import type { Job } from './catalog.ts';
import { type Gateway, nowSecs } from './gateway.ts';
import type { BoundRequest } from './job-request.ts';

/** A payment that passed every check that needs no claim: it can be started. */
export interface CheckedPayment {
  readonly kind: 'good';
  readonly digest: Hex;
  readonly story: Story;
  readonly payment: SignedPayment;
  readonly verifiedBy: 'facilitator' | 'signature';
}

/** Why a payment is not taken. Nothing has been recorded or told yet. */
export type Objection =
  | {
      readonly kind: 'rejected';
      readonly code: 'payment_invalid' | 'quote_expired';
      readonly why: Pick<EventData<'payment_rejected'>, 'stage' | 'reason' | 'quote_digest' | 'payer'>;
    }
  | { readonly kind: 'quote_in_use' | 'facilitator_unavailable'; readonly digest: Hex }
  | { readonly kind: 'rate_limited'; readonly retryAfterSecs: number }
  | { readonly kind: 'no_room'; readonly digest: Hex; readonly reason: 'stopping' | 'outbox_full' };

/** The facilitator refuses what expires within this; settling may start no later. */
const facilitatorMarginSecs = 6;

/** Steps 2 to 6: everything that can speak against a payment before it is claimed, local checks first. */
export async function checkDecodedPayment(
  gateway: Gateway,
  request: BoundRequest,
  job: Job,
  decoded: DecodedPayment,
): Promise<CheckedPayment | Objection> {
  const matched = await matchQuote(gateway, job, decoded);
  if ('kind' in matched) return matched;
  const { digest, payment } = matched;
  const verifiedBy = await verify(gateway, matched);
  if (typeof verifiedBy === 'object') return verifiedBy;
  const payer = payerAsker(payment.payer);
  if (!request.askers.includes(payer)) request.askers.push(payer);
  const retryAfterSecs = gateway.budget.spent(request.askers);
  if (retryAfterSecs !== undefined) return { kind: 'rate_limited', retryAfterSecs };
  if (gateway.stopping()) return { kind: 'no_room', digest, reason: 'stopping' };
  if (gateway.lane.state.openCalls >= gateway.config.limits.maxOutstandingCalls) {
    return { kind: 'no_room', digest, reason: 'outbox_full' };
  }
  // verifying took its time: settling must still fit into the authorization
  const late = timeError(payment.validAfter, payment.validBefore, paymentWindow(gateway, nowSecs(gateway)));
  if (late) return rejected({ stage: 'shape', reason: late, quote_digest: digest });
  return { kind: 'good', ...matched, verifiedBy };
}

type MatchedPayment = Omit<CheckedPayment, 'kind' | 'verifiedBy'>;

function rejected(
  why: Extract<Objection, { kind: 'rejected' }>['why'],
  code: 'payment_invalid' | 'quote_expired' = 'payment_invalid',
): Objection {
  return { kind: 'rejected', code, why };
}

/** Steps 2 and 3: the quote it names, the option it means, and its own spelling. Asks nobody but the ledger. */
async function matchQuote(
  gateway: Gateway,
  job: Job,
  decoded: DecodedPayment,
): Promise<MatchedPayment | Objection> {
  const digest = decoded.quoteDigest;
  if (digest === undefined) return rejected({ stage: 'match', reason: 'names_no_quote' });
  const named = { stage: 'match', quote_digest: digest } as const;
  const { events, nowSecs: readAt } = await readStream(gateway.db, digest);
  const story = foldStory(events);
  const { quote } = story;
  if (!quote || quote.service_id !== job.serviceId || quote.job_index !== job.jobIndex) {
    return rejected({ ...named, reason: 'unknown_quote' });
  }
  const option = matchOption(decoded, quote.options.map(optionFromJson));
  if (!option) return rejected({ ...named, reason: 'matches_no_option' });
  if (!isOpen(story, readAt)) {
    if (quote.expires_at > readAt) return { kind: 'quote_in_use', digest };
    return rejected({ ...named, reason: 'quote_expired' }, 'quote_expired');
  }
  const payment = checkPayment(decoded, option, paymentWindow(gateway, readAt));
  return 'invalid' in payment
    ? rejected({ stage: 'shape', reason: payment.invalid, quote_digest: digest })
    : { digest, story, payment };
}

function paymentWindow(gateway: Gateway, atSecs: number): PaymentWindow {
  const { maxTimeoutSecs, facilitator } = gateway.x402;
  const settleMarginSecs = facilitatorMarginSecs + Math.ceil(facilitator.settleTimeoutMs / 1_000);
  return { nowSecs: atSecs, maxTimeoutSecs, settleMarginSecs };
}

/**
 * Step 4: who says that this payment is good. Where the operator skips the facilitator's word, the payer's own signature
 * has to say it: a contract's signature cannot be checked here, so it goes to the facilitator all the same.
 */
async function verify(
  gateway: Gateway,
  { digest, payment }: MatchedPayment,
): Promise<CheckedPayment['verifiedBy'] | Objection> {
  if (!gateway.x402.facilitator.verify && (await isSignedByPayer(payment))) return 'signature';
  const answer = await gateway.facilitator.verify(facilitatorRequest(payment, digest));
  if (answer.kind === 'invalid') {
    return rejected({ stage: 'verify', reason: answer.reason, quote_digest: digest, payer: payment.payer });
  }
  const lies = answer.kind === 'valid' && answer.payer !== undefined && answer.payer !== payment.payer;
  if (answer.kind === 'valid' && !lies) return 'facilitator';
  const cause = answer.kind === 'unavailable' ? answer.cause : 'payer_mismatch';
  gateway.log.warn({ quote_digest: digest, cause }, 'the facilitator gave no usable answer to verify');
  return { kind: 'facilitator_unavailable', digest };
}
