import { schemes } from '../../payments/rules/schemes/schemes.ts';
import type { SignedPayment } from '../../payments/rules/payment.ts';
import { facilitatorRequest } from '../../payments/rules/x402.ts';
import type { Job } from './catalog.ts';
import type { SignatureCheck } from './check-signature.ts';
import type { JobsContext } from './context.ts';
import { nowSecs } from '../../ledger/store/ledger.ts';
import { findLanded, type Landing, mayBeOfOffer } from './find-settlement.ts';
import type { BoundRequest } from './job-request.ts';
import type { MatchedPayment } from './match-quote.ts';
import { passedOn } from './passed-on.ts';
import { isOfferSecret } from './receipt-keys.ts';
import { type JobRefusal, refusal, rejectedPayment } from './refusal.ts';

export interface Verification {
  readonly verifiedBy: 'facilitator' | 'signature' | 'chain';
  /** Whether its transfer landed before the payment reached the gateway. */
  readonly landing: Landing;
}

type Verified = Verification & { readonly kind: 'verified' };

/**
 * Step 4: the facilitator verifies the payment, unless the operator has it skipped for public jobs and the payer's signature
 * can be checked here. The facilitator is still called if its circuit is open or it has stopped settling that network,
 * since a payment must not be started that cannot be settled.
 */
export async function verifyPayment(
  context: JobsContext,
  request: BoundRequest,
  job: Job,
  matched: MatchedPayment,
  signed: SignatureCheck,
): Promise<Verified | JobRefusal> {
  const { facilitator, offers } = context;
  const { digest, payment } = matched;
  const mayBeLost = await context.lostPayments.mayHold(payment, context.settings.maxTimeoutSecs);
  // a search will claim it, and then it takes more than the signed payment, which is public by now
  const unlessLost = (judged: Verified | JobRefusal): Verified | JobRefusal =>
    mayBeLost && judged.kind === 'verified' ? refusal(request, 'payment_unrecorded', { digest }) : judged;
  // the operator must act first: its amount, or what its payer signed, may be wrong by any factor
  if (offers.isWrong(payment))
    return unlessLost(await judgeInvalid(context, request, job, matched, 'token_misconfigured'));
  if (matched.late) return unlessLost(await judgeLate(context, request, matched, matched.late));
  const isSkipped = !context.settings.facilitatorVerify && job.mode === 'public_paid';
  const canBeSettled = !facilitator.isCircuitOpen() && offers.isSettled(payment);
  if (isSkipped && canBeSettled && !mayBeLost && signed.kind === 'signed') return verifiedBy('signature');
  const source = { payer: payment.payer, client: request.client };
  const answer = await facilitator.verify(
    facilitatorRequest(payment, digest, passedOn(context, request, job)),
    source,
  );
  if (answer.kind === 'invalid')
    return unlessLost(await judgeInvalid(context, request, job, matched, answer.reason));
  const isOtherPayer =
    answer.kind === 'valid' && answer.payer !== undefined && answer.payer !== payment.payer;
  if (answer.kind === 'valid' && !isOtherPayer) return verifiedBy('facilitator');
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
  context: JobsContext,
  request: BoundRequest,
  job: Job,
  matched: MatchedPayment,
  reason: string,
): Promise<Verified | JobRefusal> {
  const { digest, payment, state } = matched;
  const landing = await findLanding(context, payment, state.quote?.issued_at ?? nowSecs(context), reason);
  const shown = landing.kind === 'not_landed' ? landing.reason : undefined;
  const why = { reason: shown ?? reason, quote_digest: digest, payer: payment.payer };
  return judgeLanding(context, request, matched, landing, rejectedPayment(job, { stage: 'verify', ...why }));
}

function judgeLanding(
  context: JobsContext,
  request: BoundRequest,
  matched: MatchedPayment,
  landing: Landing,
  rejected: JobRefusal,
): Verified | JobRefusal {
  const { digest } = matched;
  switch (landing.kind) {
    case 'landed':
      return isOfClient(context, request, matched, landing)
        ? verifiedBy('chain', landing)
        : refusal(request, 'payment_recovered', { digest, details: [unprovenLanding] });
    case 'unsure':
      return refusal(request, 'payment_use_unknown', { digest });
    case 'not_landed':
      return rejected;
  }
}

/** A payment that comes too late to be settled is taken only where its payer is charged already. */
async function judgeLate(
  context: JobsContext,
  request: BoundRequest,
  matched: MatchedPayment,
  late: JobRefusal,
): Promise<Verified | JobRefusal> {
  const { payment, state } = matched;
  const chain = context.chains.get(payment.network);
  if (!chain) return late;
  const landing = await findLanded(chain, payment, state.quote?.issued_at ?? Number(payment.validBefore));
  return judgeLanding(context, request, matched, landing, late);
}

const unprovenLanding =
  'it has landed already, and nothing in this request shows that it was signed for this offer: echo the whole offer, or sign for the request';

/**
 * Whether a landed payment buys a call for this client. It is public, so that anybody can send it, to any ledger with the same payee: the
 * client proves that the offer was its own by the offer's secret, and the transfer must not be older than the offer. Version 1 names no
 * offer. It buys nothing where the operator says that another ledger has the payee as well: its payer can have an offer of each.
 */
function isOfClient(
  context: JobsContext,
  { sent }: BoundRequest,
  { digest, state }: MatchedPayment,
  { settlement: { proof } }: Extract<Landing, { kind: 'landed' }>,
): boolean {
  const { settings, receiptKeys, log } = context;
  if (!settings.payToExclusive) return false;
  const terms = sent.kind === 'decoded' ? sent.decoded.terms : undefined;
  if (!terms) return true;
  const { offerSecret } = terms;
  if (offerSecret === undefined || !isOfferSecret(receiptKeys, digest, offerSecret, log)) return false;
  return proof !== undefined && mayBeOfOffer(proof, state.quote?.issued_at ?? 0, nowSecs(context));
}

async function findLanding(
  { chains }: JobsContext,
  payment: SignedPayment,
  quotedAtSecs: number,
  reason: string,
): Promise<Landing> {
  const chain = chains.get(payment.network);
  if (chain) return findLanded(chain, payment, quotedAtSecs);
  // without an RPC the reason is all there is: only some exclude that the transfer has landed
  const { failsBeforeBroadcast } = schemes[payment.transferMethod];
  return { kind: failsBeforeBroadcast(reason) ? 'not_landed' : 'unsure' };
}

function verifiedBy(
  verifier: Verification['verifiedBy'],
  landing: Landing = { kind: 'not_landed' },
): Verified {
  return { kind: 'verified', verifiedBy: verifier, landing };
}
