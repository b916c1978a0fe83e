import { chainIdOf } from '../../base/values/primitives.ts';
import {
  type CallerPorts,
  type CallerRefusalCode,
  checkCaller,
  findDelegatedCaller,
  type FoundCaller,
} from './authorize-caller.ts';
import { payerBudgetKey } from '../../base/runtime/budget.ts';
import { canContractSignIn } from '../../base/config/identity.ts';
import { readTopUpOrder } from '../../base/values/top-up-order.ts';
import { discoveryKey } from '../../base/values/discovery.ts';
import type { SignedPayment } from '../../payments/rules/payment.ts';
import { schemes } from '../../payments/rules/schemes/schemes.ts';
import { facilitatorRequest, type PassedOn } from '../../payments/rules/x402.ts';
import { isAccountClosed } from '../../accounts/store/user-erasure.ts';
import { type CapacityPorts, checkCapacity } from './capacity.ts';
import { type Job, jobResource } from './catalog.ts';
import { topUpOrderOf } from './check-request.ts';
import { findLanded, type Landing, mayBeOfOffer } from '../../payments/use-cases/find-settlement.ts';
import {
  checkSignature,
  type SignatureCheck,
  type SignaturePorts,
} from '../../payments/use-cases/payer-signature.ts';
import type { PayableKind, Settler } from '../../payments/peers/facilitator/facilitators.ts';
import type { LostPayments } from '../../payments/use-cases/lost-payments.ts';
import type { Offers } from './offers.ts';
import { nowSecs } from '../../ledger/store/ledger.ts';
import type { BoundRequest, PaidRequest } from './job-request.ts';
import type { MatchedPayment } from './match-quote.ts';
import {
  type AuthorizedCaller,
  callerDenied,
  callerNonceReplay,
  type JobRefusal,
  rateLimited,
  refusal,
  rejectedPayment,
} from './refusal.ts';
import { isOfferSecret, type ReceiptKeys } from '../../payments/use-cases/receipt-keys.ts';

export interface CheckPorts extends CallerPorts, SignaturePorts, CapacityPorts {
  readonly offers: Offers;
  readonly lostPayments: LostPayments;
  readonly receiptKeys: ReceiptKeys;
  readonly publicUrl: () => string;
}

interface Verification {
  readonly verifiedBy: 'facilitator' | 'signature' | 'chain';
  /** Who alone is asked to settle it. */
  readonly settler: Settler;
  /** Whether its transfer landed before the payment reached the gateway. */
  readonly landing: Landing;
}

type Verified = Verification & { readonly kind: 'verified' };

interface VerifiedPayment extends Omit<MatchedPayment, 'kind'>, Verification {
  /** Whose signature it is: of the payer's own key, or one that only its contract can check. */
  readonly signedBy: 'key' | 'contract';
  /** The body of a top-up that says to whose account its credit goes. */
  readonly topUpOrder: string | undefined;
  /** The further fields of its requests to the facilitator. */
  readonly passedOn: PassedOn;
}

/** A payment that passed every check that needs no claim: it can be started. */
export interface CheckedPayment extends VerifiedPayment {
  readonly kind: 'checked';
  /** Of a restricted job: proven and permitted. */
  readonly caller: AuthorizedCaller | undefined;
}

/** Steps 4 to 6: every check of a matched payment before it is claimed, local checks first. */
export async function checkPayment(
  context: CheckPorts,
  request: PaidRequest,
  job: Job,
  matched: MatchedPayment,
): Promise<CheckedPayment | JobRefusal> {
  const { digest, payment } = matched;
  // the caller's headers are checked before any peer is asked
  const isDelegated = job.restriction?.authMode === 'delegated_caller_signature';
  const payer = { kind: 'found', caller: payment.payer, claim: undefined, isProven: true } as const;
  const found = job.restriction && (isDelegated ? findDelegatedCaller(context, request, job) : payer);
  if (found?.kind === 'failed') return callerDenied(request, job, found.code, { digest });
  const signed = await checkSignature(context, payment);
  if (signed.kind === 'unavailable')
    return refusal(request, 'facilitator_unavailable', { digest, reason: 'signature_unchecked' });
  if (signed.kind === 'not_deployed') {
    const why = { stage: 'verify', reason: signed.kind, quote_digest: digest } as const;
    return rejectedPayment(job, why, 'wallet_not_deployed');
  }
  if (signed.kind === 'not_signed') {
    return rejectedPayment(job, { stage: 'verify', reason: notSigned, quote_digest: digest });
  }
  const topUpOrder = job.isTopUp ? topUpOrderOf(request) : undefined;
  const why = job.isTopUp ? await whyNoCredit(context, request, topUpOrder, payment, signed) : undefined;
  if (why !== undefined) return rejectedPayment(job, { stage: 'match', reason: why, quote_digest: digest });
  const carried = passedOn(context, request, job);
  const verified = await verifyPayment(context, request, job, matched, signed, carried);
  if (verified.kind === 'refusal') return verified;
  const signedBy = signed.kind === 'signed' ? signed.by : 'contract';
  const ready = { ...matched, ...verified, signedBy, topUpOrder, passedOn: carried };
  return checkVerified(context, request, job, ready, found);
}

/** The facilitators' own reason for it. */
const notSigned = 'invalid_exact_evm_signature';

/** Why no account can be credited with a payment; undefined if one can. */
async function whyNoCredit(
  context: CheckPorts,
  request: BoundRequest,
  order: string | undefined,
  payment: SignedPayment,
  signed: Extract<SignatureCheck, { kind: 'signed' | 'unchecked' }>,
): Promise<string | undefined> {
  if (order === undefined)
    return canHaveCredit(context, payment, signed) ? undefined : 'contract_wallet_of_another_chain';
  // what the payer signed is this order's, so that another holder of the payment cannot send it with another
  if (payment.nonce !== request.bodySha256) return 'nonce_of_another_order';
  const accountId = readTopUpOrder(order)?.accountId ?? 0;
  return (await isAccountClosed(context.pool, accountId)) ? 'account_closed' : undefined;
}

/** A contract's address may have another owner on another chain, so credit is for those who sign in on the payment's chain. */
function canHaveCredit(
  { config }: CheckPorts,
  { network }: SignedPayment,
  signed: Extract<SignatureCheck, { kind: 'signed' | 'unchecked' }>,
): boolean {
  if (signed.kind === 'signed' && signed.by === 'key') return true;
  const chainId = chainIdOf(network);
  return chainId !== undefined && canContractSignIn(config.identity, chainId);
}

/**
 * The fields that a payment's requests to the facilitator carry in addition: the client's extensions as they came, except for the entry
 * by which the facilitator lists the job. That is always ours: what a client writes there would be published under our address.
 */
function passedOn({ publicUrl }: CheckPorts, { decoded }: PaidRequest, job: Job): PassedOn {
  const { [discoveryKey]: _, ...others } = decoded.extensions ?? {};
  if (!job.discovery) return { extensions: others };
  return {
    resource: jobResource(publicUrl(), job),
    extensions: { ...others, [discoveryKey]: job.discovery.extension },
  };
}

/**
 * Step 4: a facilitator verifies the payment, unless the operator has it skipped for public jobs and the payer's signature
 * can be checked here. One is still called if no circuit is closed or none settles that network any more,
 * since a payment must not be started that cannot be settled. The one that verified it settles it.
 */
async function verifyPayment(
  context: CheckPorts,
  request: PaidRequest,
  job: Job,
  matched: MatchedPayment,
  signed: Extract<SignatureCheck, { kind: 'signed' | 'unchecked' }>,
  carried: PassedOn,
): Promise<Verified | JobRefusal> {
  const { facilitators, offers } = context;
  const { digest, payment } = matched;
  const mayBeLost = await context.lostPayments.mayHold(payment, context.settings.maxTimeoutSecs);
  // a search will claim it, and then it takes more than the signed payment, which is public by now
  const unlessLost = (judged: Verified | JobRefusal): Verified | JobRefusal =>
    mayBeLost && judged.kind === 'verified' ? refusal(request, 'payment_unrecorded', { digest }) : judged;
  // the operator must act first: its amount, or what its payer signed, may be wrong by any factor
  if (offers.isWrong(payment))
    return unlessLost(await judgeInvalid(context, request, job, matched, 'token_misconfigured'));
  if (matched.late) {
    // it is taken only if its payer is charged already
    const quotedAtSecs = matched.state.quote?.issued_at ?? Number(payment.validBefore);
    const landing = await findLanding(context, payment, quotedAtSecs, { kind: 'not_landed' });
    return unlessLost(judgeLanding(context, request, matched, landing, matched.late));
  }
  const needs = { factory: signed.factory, submitter: payment.submitter };
  const isSkipped = !context.settings.facilitatorVerify && job.mode === 'public_paid';
  if (isSkipped && !mayBeLost && signed.kind === 'signed' && offers.isSettled(payment)) {
    const settler = facilitators.settlerOf({ ...kindOf(payment), ...needs });
    if (settler) return verifiedBy('signature', settler);
  }
  const source = { payer: payment.payer, client: request.client };
  const asked = facilitatorRequest(payment, digest, carried);
  const answer = await facilitators.verify(asked, source, needs);
  if (answer.kind === 'invalid')
    return unlessLost(await judgeInvalid(context, request, job, matched, answer.reason));
  const isOtherPayer =
    answer.kind === 'valid' && answer.payer !== undefined && answer.payer !== payment.payer;
  if (answer.kind === 'valid' && !isOtherPayer) return verifiedBy('facilitator', { name: answer.name });
  const { cause, error } =
    answer.kind === 'unavailable' ? answer : { cause: 'payer_mismatch', error: undefined };
  // an open circuit was logged when it opened
  if (cause !== 'circuit_open') {
    // only the operator's own signer may put text into the log, a facilitator may not
    const err = cause === 'authorization_failed' ? { err: error } : {};
    context.log.warn(
      { quote_digest: digest, cause, ...err },
      'the facilitator gave no usable answer to verify',
    );
  }
  return refusal(request, 'facilitator_unavailable', { digest, reason: cause });
}

/**
 * A payment that the facilitator rejects is started only if the chain shows that it has paid already. While the chain does not
 * show what became of its authorization it is neither rejected nor started: a payment that is started holds a call.
 */
async function judgeInvalid(
  context: CheckPorts,
  request: PaidRequest,
  job: Job,
  matched: MatchedPayment,
  reason: string,
): Promise<Verified | JobRefusal> {
  const { digest, payment, state } = matched;
  // without an RPC the reason is all there is: only some exclude that the transfer has landed
  const { failsBeforeBroadcast } = schemes[payment.transferMethod];
  const withoutChain = { kind: failsBeforeBroadcast(reason) ? 'not_landed' : 'unsure' } as const;
  const quotedAtSecs = state.quote?.issued_at ?? nowSecs(context);
  const landing = await findLanding(context, payment, quotedAtSecs, withoutChain);
  const shown = landing.kind === 'not_landed' ? landing.reason : undefined;
  const why = { reason: shown ?? reason, quote_digest: digest, payer: payment.payer };
  return judgeLanding(context, request, matched, landing, rejectedPayment(job, { stage: 'verify', ...why }));
}

function judgeLanding(
  context: CheckPorts,
  request: PaidRequest,
  matched: MatchedPayment,
  landing: Landing,
  rejected: JobRefusal,
): Verified | JobRefusal {
  const { digest } = matched;
  switch (landing.kind) {
    case 'landed':
      // what the request would use is not known: what was moved before is returned
      return matched.payment.transferMethod !== 'upto' && isOfClient(context, request, matched, landing)
        ? verifiedBy('chain', { name: undefined }, landing)
        : refusal(request, 'payment_recovered', { digest, details: landedDetails(matched) });
    case 'unsure':
      return refusal(request, 'payment_use_unknown', { digest });
    case 'not_landed':
      return rejected;
  }
}

function landedDetails({ payment }: MatchedPayment): readonly string[] {
  return [payment.transferMethod === 'upto' ? landedUnused : unprovenLanding];
}

const landedUnused = 'it has landed before this request has used anything: its refund is due';
const unprovenLanding =
  'it has landed already, and nothing in this request shows that it was signed for this offer: echo the whole offer, or sign for the request';

/**
 * Whether a landed payment buys a call for this client. It is public, so that anybody can send it, to any ledger with the same payee: the
 * client proves that the offer was its own by the offer's secret, and the transfer must not be older than the offer. Version 1 names no
 * offer. It buys nothing if the operator says that another ledger has the payee as well: its payer can have an offer of each.
 */
function isOfClient(
  context: CheckPorts,
  { decoded: { terms } }: PaidRequest,
  { digest, state }: MatchedPayment,
  { settlement: { proof } }: Extract<Landing, { kind: 'landed' }>,
): boolean {
  const { settings, receiptKeys, log } = context;
  if (!settings.payToExclusive) return false;
  if (!terms) return true;
  const { offerSecret } = terms;
  if (offerSecret === undefined || !isOfferSecret(receiptKeys, digest, offerSecret, log)) return false;
  return proof !== undefined && mayBeOfOffer(proof, state.quote?.issued_at ?? 0, nowSecs(context));
}

async function findLanding(
  { chains }: CheckPorts,
  payment: SignedPayment,
  quotedAtSecs: number,
  withoutChain: Landing,
): Promise<Landing> {
  const chain = chains.get(payment.network);
  return chain ? findLanded(chain, payment, quotedAtSecs) : withoutChain;
}

function kindOf({ transferMethod, network }: SignedPayment): PayableKind {
  return { scheme: schemes[transferMethod].x402Scheme, network };
}

function verifiedBy(
  verifier: Verification['verifiedBy'],
  settler: Settler,
  landing: Landing = { kind: 'not_landed' },
): Verified {
  return { kind: 'verified', verifiedBy: verifier, settler: { name: settler.name }, landing };
}

/** Steps 5 and 6. From here on the request is charged to the payer as well. */
async function checkVerified(
  context: CheckPorts,
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
      if (result.kind === 'failed') return callerRefusal(request, job, result, verified, found);
    }
  }
  const caller = job.restriction &&
    found && {
      mode: job.restriction.authMode,
      address: found.caller,
      nonce: found.claim?.nonce,
      expiry: found.claim?.expiry,
    };
  const wanted = { digest, payer: payment.payer, hasLanded: landing.kind === 'landed' };
  const full = await checkCapacity(context, request, job, wanted, caller);
  return full ?? { ...verified, kind: 'checked', caller };
}

function callerRefusal(
  request: BoundRequest,
  job: Job,
  { code, usedBy }: { readonly code: CallerRefusalCode; readonly usedBy?: string },
  { digest, payment, state, opening }: VerifiedPayment,
  { caller, claim }: FoundCaller,
): JobRefusal {
  if (usedBy !== undefined && claim)
    return callerNonceReplay(digest, payment, { job, caller, nonce: claim.nonce, usedBy });
  // the quote of a version 1 payment does not exist yet: it is written with the start
  return callerDenied(request, job, code, {
    digest,
    caller,
    ...(opening.length > 0 ? {} : { version: state.version }),
  });
}
