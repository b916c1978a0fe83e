import { type Address, chainIdOf } from '../../base/values/primitives.ts';
import {
  type CallerRefusalCode,
  checkCaller,
  findDelegatedCaller,
  type FoundCaller,
} from './authorize-caller.ts';
import { payerBudgetKey } from '../../base/runtime/budget.ts';
import { canContractSignIn } from '../../base/config/identity.ts';
import { readTopUpOrder } from '../../base/values/top-up-order.ts';
import type { SignedPayment } from '../../payments/rules/payment.ts';
import { isAccountClosed } from '../../accounts/store/user-erasure.ts';
import { type Job, type Restriction, sellsCredit } from './catalog.ts';
import { topUpOrderOf } from './check-request.ts';
import { checkSignature, type SignatureCheck } from './check-signature.ts';
import type { JobsContext } from './context.ts';
import { openPaidCalls } from '../../ledger/store/ledger.ts';
import type { BoundRequest } from './job-request.ts';
import type { MatchedPayment } from './match-quote.ts';
import {
  type AuthorizedCaller,
  callerDenied,
  callerNonceReplay,
  enqueueFailed,
  type JobRefusal,
  rateLimited,
  refusal,
  rejectedPayment,
} from './refusal.ts';
import { isRunnerSilent } from './runner-silence.ts';
import { hasSettlementSlot } from './settlement-slots.ts';
import { type Verification, verifyPayment } from './verify-payment.ts';

interface VerifiedPayment extends Omit<MatchedPayment, 'kind'>, Verification {
  /** Whose signature it is: of the payer's own key, or one that only its contract can check. */
  readonly signedBy: 'key' | 'contract';
}

/** A payment that passed every check that needs no claim: it can be started. */
export interface CheckedPayment extends VerifiedPayment {
  readonly kind: 'checked';
  /** Of a restricted job: proven and permitted. */
  readonly caller: AuthorizedCaller | undefined;
  /** The body of a top-up that says to whose account its credit goes. */
  readonly topUpOrder: string | undefined;
}

/** Steps 4 to 6: every check of a matched payment before it is claimed, local checks first. */
export async function checkPayment(
  context: JobsContext,
  request: BoundRequest,
  job: Job,
  matched: MatchedPayment | JobRefusal,
): Promise<CheckedPayment | JobRefusal> {
  if (matched.kind === 'refusal') return matched;
  const { digest, payment } = matched;
  // the caller's headers are checked before any peer is asked
  const found = job.restriction && findCaller(context, request, job, job.restriction, payment.payer);
  if (found?.kind === 'failed') return callerDenied(request, job, found.code, { digest });
  const signed = await checkSignature(context, payment);
  if (signed.kind === 'unavailable')
    return refusal(request, 'facilitator_unavailable', { digest, reason: 'signature_unchecked' });
  if (signed.kind === 'not_signed') {
    return rejectedPayment(job, { stage: 'verify', reason: notSigned, quote_digest: digest });
  }
  const why = sellsCredit(job) ? await whyNoCredit(context, request, job, payment, signed) : undefined;
  if (why !== undefined) return rejectedPayment(job, { stage: 'match', reason: why, quote_digest: digest });
  const verified = await verifyPayment(context, request, job, matched, signed);
  if (verified.kind === 'refusal') return verified;
  const signedBy = signed.kind === 'signed' ? signed.by : 'contract';
  return checkVerified(context, request, job, { ...matched, ...verified, signedBy }, found);
}

/** The facilitators' own reason for it. */
const notSigned = 'invalid_exact_evm_signature';

/** Why nobody can be credited with a payment; undefined where somebody can. */
async function whyNoCredit(
  context: JobsContext,
  request: BoundRequest,
  job: Job,
  payment: SignedPayment,
  signed: Extract<SignatureCheck, { kind: 'signed' | 'unchecked' }>,
): Promise<string | undefined> {
  const order = topUpOrderOf(request, job);
  if (order === undefined)
    return canHaveCredit(context, payment, signed) ? undefined : 'contract_wallet_of_another_chain';
  // what the payer signed is this order's, so that another holder of the payment cannot send it with another
  if (payment.nonce !== request.bodySha256) return 'nonce_of_another_order';
  const accountId = readTopUpOrder(order)?.accountId ?? 0;
  return (await isAccountClosed(context.pool, accountId)) ? 'account_closed' : undefined;
}

/** A contract's address may have another owner on another chain, so credit is for those who sign in on the payment's chain. */
function canHaveCredit(
  { config }: JobsContext,
  { network }: SignedPayment,
  signed: Extract<SignatureCheck, { kind: 'signed' | 'unchecked' }>,
): boolean {
  if (signed.kind === 'signed' && signed.by === 'key') return true;
  const chainId = chainIdOf(network);
  return chainId !== undefined && canContractSignIn(config.identity, chainId);
}

/** Steps 5 and 6. From here on the request is charged to the payer as well. */
async function checkVerified(
  context: JobsContext,
  request: BoundRequest,
  job: Job,
  verified: VerifiedPayment,
  found: FoundCaller | undefined,
): Promise<CheckedPayment | JobRefusal> {
  const { digest, payment, landing } = verified;
  request.charge.take(payerBudgetKey(payment.payer));
  const waitSecs = request.charge.waitSecs();
  if (waitSecs > 0) return rateLimited(waitSecs);
  if (job.restriction && found) {
    for await (const { result } of checkCaller(context, request, job, job.restriction, found)) {
      if (result.kind === 'failed') return callerRefusal(request, job, result.code, verified, found);
    }
  }
  const caller = job.restriction &&
    found && {
      mode: job.restriction.authMode,
      address: found.caller,
      nonce: found.claim?.nonce,
      expiry: found.claim?.expiry,
    };
  // a payment that has landed is taken: its call waits
  if (landing.kind !== 'landed' && isRunnerSilent(context.runnerSilence, job))
    return refusal(request, 'runner_unavailable', { digest });
  if (context.tooLate()) return enqueueFailed(job, digest, 'stopping', caller);
  const { maxOutstandingCalls } = context.config.limits;
  if (openPaidCalls(context) >= maxOutstandingCalls) return enqueueFailed(job, digest, 'outbox_full', caller);
  // one that has landed is decided at once
  if (landing.kind !== 'landed' && !(await hasSettlementSlot(context, payment.payer)))
    return enqueueFailed(job, digest, 'too_many_unsettled', caller);
  return { ...verified, kind: 'checked', caller, topUpOrder: topUpOrderOf(request, job) };
}

function findCaller(
  context: JobsContext,
  request: BoundRequest,
  job: Job,
  { authMode }: Restriction,
  payer: Address,
): ReturnType<typeof findDelegatedCaller> {
  if (authMode === 'delegated_caller_signature') return findDelegatedCaller(context, request, job);
  return { kind: 'found', caller: payer, claim: undefined, isProven: true };
}

function callerRefusal(
  request: BoundRequest,
  job: Job,
  code: CallerRefusalCode,
  { digest, payment, state, opening }: VerifiedPayment,
  { caller, claim }: FoundCaller,
): JobRefusal {
  if (code === 'signature_replay' && claim)
    return callerNonceReplay(digest, payment, { job, caller, nonce: claim.nonce });
  // the quote of a version 1 payment does not exist yet: it is written with the start
  return callerDenied(request, job, code, {
    digest,
    caller,
    ...(opening.length > 0 ? {} : { version: state.version }),
  });
}
