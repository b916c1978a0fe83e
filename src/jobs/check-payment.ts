import type { DecodedPayment } from '../domain/payments/decode-payment.ts';
import { isSignedByPayer, type SignedPayment } from '../domain/payments/payment.ts';
import { windowError } from '../domain/payments/payment-window.ts';
import type { AuthMode } from '../domain/payments/job.ts';
import type { Address, Hex } from '../domain/values/primitives.ts';
import type { RefusalCode } from '../domain/errors/refusal.ts';
import { facilitatorRequest } from '../domain/payments/x402.ts';
import { isNonceUsed, type StreamReading } from '../store/streams.ts';
import { payerAsker } from './budget.ts';
import {
  askPermission,
  findDelegatedCaller,
  type FoundCaller,
  proveContractCaller,
} from './authorize-caller.ts';
import type { Job, Restriction } from './catalog.ts';
import { findLanded } from './find-settlement.ts';
import { type JobsContext, nowSecs } from './context.ts';
import type { BoundRequest } from './job-request.ts';
import { type MatchedPayment, type Mismatch, matchQuote, paymentWindow, rejected } from './match-quote.ts';
import type { Settlement } from './settlement-outcome.ts';

/** A payment that passed every check that needs no claim: it can be started. */
export interface CheckedPayment extends MatchedPayment {
  readonly kind: 'good';
  readonly verifiedBy: 'facilitator' | 'signature' | 'chain';
  /** Where it stands on the chain, should somebody have landed it before it came here. */
  readonly landed?: Settlement | undefined;
  /** Of a restricted job: proven and permitted. */
  readonly caller: AuthorizedCaller | undefined;
}

export interface AuthorizedCaller {
  readonly mode: AuthMode;
  readonly address: Address;
  /** Delegated callers use each nonce for one payment. */
  readonly nonce: string | undefined;
}

/** Why a payment is not taken. Nothing has been recorded or told yet. */
export type Objection =
  | Mismatch
  | { readonly kind: 'facilitator_unavailable'; readonly digest: Hex }
  /** `version` of the quote's story where the payment was verified before the caller was refused. */
  | {
      readonly kind: 'denied';
      readonly code: RefusalCode;
      readonly digest: Hex;
      readonly caller: Address | undefined;
      readonly version: number | undefined;
    }
  /** The delegated nonce has been used by another payment. */
  | { readonly kind: 'nonce_used'; readonly digest: Hex; readonly payment: SignedPayment }
  | { readonly kind: 'rate_limited'; readonly retryAfterSecs: number }
  | { readonly kind: 'no_room'; readonly digest: Hex; readonly reason: 'stopping' | 'outbox_full' };

/** Steps 2 to 6: everything that can speak against a payment before it is claimed, local checks first. */
export async function checkDecodedPayment(
  context: JobsContext,
  request: BoundRequest,
  job: Job,
  decoded: DecodedPayment,
  quote: StreamReading,
): Promise<CheckedPayment | Objection> {
  const matched = await matchQuote(context, job, decoded, quote);
  if ('kind' in matched) return matched;
  const { digest, payment } = matched;
  // what the request itself says about its caller is looked at before any peer is asked
  const found = job.restriction && findCaller(context, request, job, job.restriction, payment.payer);
  if (typeof found === 'string') return denied(found, digest);
  const verified = await verify(context, job, matched);
  if ('kind' in verified) return verified;
  const payer = payerAsker(payment.payer);
  if (!request.askers.includes(payer)) request.askers.push(payer);
  const retryAfterSecs = context.budget.spent(request.askers);
  if (retryAfterSecs !== undefined) return { kind: 'rate_limited', retryAfterSecs };
  const refused =
    job.restriction && found && (await authorize(context, request, job, job.restriction, found));
  if (refused === 'signature_replay') return { kind: 'nonce_used', digest, payment };
  // a version 1 payment's quote does not exist yet: it is written with the start
  const version = matched.opening.length > 0 ? undefined : matched.story.version;
  if (refused) return { ...denied(refused, digest), caller: found?.caller, version };
  if (context.stopping()) return { kind: 'no_room', digest, reason: 'stopping' };
  if (context.lane.state.openCalls >= context.config.limits.maxOutstandingCalls) {
    return { kind: 'no_room', digest, reason: 'outbox_full' };
  }
  // verifying took its time: settling must still fit into the authorization
  const late = windowError(payment.validAfter, payment.validBefore, paymentWindow(context, nowSecs(context)));
  if (late && !verified.landed) return rejected({ stage: 'shape', reason: late, quote_digest: digest });
  const caller = job.restriction &&
    found && { mode: job.restriction.authMode, address: found.caller, nonce: found.claim?.nonce };
  return { kind: 'good', ...matched, ...verified, caller };
}

function denied(code: RefusalCode, digest: Hex): Extract<Objection, { kind: 'denied' }> {
  return { kind: 'denied', code, digest, caller: undefined, version: undefined };
}

function findCaller(
  context: JobsContext,
  request: BoundRequest,
  job: Job,
  { authMode }: Restriction,
  payer: Address,
): FoundCaller | RefusalCode {
  if (authMode === 'delegated_caller_signature') return findDelegatedCaller(context, request, job);
  return { caller: payer, claim: undefined, isProven: true };
}

/** Step 5: the caller is proven, its nonce is free, it is permitted. The code of what speaks against it. */
async function authorize(
  context: JobsContext,
  request: BoundRequest,
  job: Job,
  restriction: Restriction,
  found: FoundCaller,
): Promise<RefusalCode | undefined> {
  const unproven = await proveContractCaller(context, restriction, request, job, found);
  if (unproven) return unproven;
  const { caller, claim } = found;
  if (claim && (await isNonceUsed(context.pool, caller, job, claim.nonce))) return 'signature_replay';
  return askPermission(context, restriction, job.serviceId, caller);
}

/**
 * Step 4: who says that this payment is good. Where the operator skips the facilitator's word, the payer's own signature
 * has to say it. The facilitator is asked all the same where that does not suffice: a contract's signature cannot be
 * checked here; behind an open circuit, or on a network that it has stopped settling since the quote, a payment could be
 * started that nobody finishes.
 */
async function verify(
  context: JobsContext,
  job: Job,
  { digest, payment, story }: MatchedPayment,
): Promise<Pick<CheckedPayment, 'verifiedBy' | 'landed'> | Objection> {
  const { facilitator, offers } = context;
  const isSkipped = !context.settings.facilitatorVerify && job.mode === 'public_paid';
  const canBeSettled = !facilitator.isCircuitOpen() && offers.isSettled(payment.network);
  if (isSkipped && canBeSettled && isSignedByPayer(payment)) return { verifiedBy: 'signature' };
  const answer = await facilitator.verify(facilitatorRequest(payment, digest));
  if (answer.kind === 'invalid') {
    const landed = await findLanded(context, payment, story.quote?.issued_at ?? nowSecs(context));
    // used perhaps for this very payment, whose client may never come back: settling it finds that out
    if (landed === 'unsure' && isSignedByPayer(payment)) return { verifiedBy: 'signature' };
    if (landed === 'unsure') return { kind: 'facilitator_unavailable', digest };
    if (landed) return { verifiedBy: 'chain', landed };
    return rejected({ stage: 'verify', reason: answer.reason, quote_digest: digest, payer: payment.payer });
  }
  const lies = answer.kind === 'valid' && answer.payer !== undefined && answer.payer !== payment.payer;
  if (answer.kind === 'valid' && !lies) return { verifiedBy: 'facilitator' };
  const { cause, error } =
    answer.kind === 'unavailable' ? answer : { cause: 'payer_mismatch', error: undefined };
  // an open circuit was told of when it opened, not again with each payment
  if (cause !== 'circuit_open') {
    // the signer is the operator's own: its words are for him, those of a peer are not
    const err = cause === 'authorization_failed' ? { err: error } : {};
    context.log.warn(
      { quote_digest: digest, cause, ...err },
      'the facilitator gave no usable answer to verify',
    );
  }
  return { kind: 'facilitator_unavailable', digest };
}
