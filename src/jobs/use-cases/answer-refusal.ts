import { refusals } from '../../base/errors/refusal.ts';
import type { JobAnswer, PaymentRequired, Refused } from './answer.ts';
import type { DecodedPayment } from '../../payments/rules/decode-payment.ts';
import {
  matchOption,
  type PaymentToken,
  readSignedPayment,
  type SignedPayment,
  payableTokens,
  tokensOfPayment,
} from '../../payments/rules/payment.ts';
import { fullOptions, optionFromJson, type SettlementOption } from '../../payments/rules/quote.ts';
import type { Proof } from '../../payments/rules/settlement.ts';
import type { Hex } from '../../base/values/primitives.ts';
import type { KnownPayment } from '../../payments/store/payment-lookup.ts';
import { recoverPayment } from '../../payments/store/recover-payment.ts';
import { checkSignature } from '../../payments/use-cases/payer-signature.ts';
import { nowSecs } from '../../ledger/store/ledger.ts';
import { findLanded, mayBeOfOffer } from '../../payments/use-cases/find-settlement.ts';
import { type MatchPorts, readNamedQuote } from './match-quote.ts';
import type { JobsConfig } from '../../base/config/config.ts';
import type { BoundRequest, JobHead, OpenedRequest } from './job-request.ts';
import { answerKnownPayment, type KnownPorts, type SentRequest } from './known-payment.ts';
import { LaneFullError } from '../../ledger/store/lane.ts';
import type { EventAllowance } from '../../ledger/store/event-allowance.ts';
import type { RequestTally } from '../../ledger/store/request-tally.ts';
import type { LostPayments } from '../../payments/use-cases/lost-payments.ts';
import type { QuoteRate } from './quote-rate.ts';
import { offerNamed, quoteJob, type QuotePorts } from './quote-job.ts';
import { append } from './start-payment.ts';
import { isRunnerAway, type RunnerSilence } from './capacity.ts';
import type { ErrorRefusal, JobRefusal, OfferRefusal, RefusalRecord } from './refusal.ts';

export interface RefusalPorts extends KnownPorts, MatchPorts, QuotePorts {
  readonly settings: JobsConfig;
  readonly quoteRate: QuoteRate;
  /** How many refusals of strangers are recorded by themselves. */
  readonly rejectionEvents: EventAllowance;
  readonly lostPayments: LostPayments;
  readonly runnerSilence: RunnerSilence;
}

/**
 * The only place that records a refusal and answers. What strangers leave in the ledger is bounded: without a key for quotes, one
 * beyond the gateway's own limit is not issued; with a key it is summarised. After some answers a payer signs again, and pays twice if
 * the refused payment has moved money. So before those the last look whether another request has started the same payment comes after
 * an append: a start that was decided before can be read by then, even if its commit took long. One that is decided later is stale if the payment was refused for its time, and loses if it is of a copy of this request, which the
 * append names: a slower copy, at any gateway. Then the chain is asked whether the payment has landed.
 */
export async function answerRefusal(
  context: RefusalPorts,
  request: Pick<OpenedRequest, 'stream' | 'charge'>,
  refusal: JobRefusal,
  paid?: SentRequest & BoundRequest,
): Promise<JobAnswer> {
  const isNewQuote = 'job' in refusal && !refusal.named;
  if (isNewQuote && context.quoteKeys === undefined && !context.quoteRate.take()) {
    sum(context, refusal.record);
    return { kind: 'refused', code: 'overloaded', reason: 'quotes_per_second' };
  }
  const isSignedAnew = 'job' in refusal || signedAnewStatuses.has(refusals[refusal.code].status);
  const refuses = paid && isSignedAnew ? paid.copyKey : undefined;
  const [answer, isAppended] = await Promise.all([
    'job' in refusal ? offerJob(context, refusal) : errorAnswer(refusal),
    recordRefusal(context, request, refusal, refuses),
  ]);
  if (paid && isSignedAnew) {
    const nothing = { stream: request.stream, events: [], refuses };
    if (!isAppended && (await append(context, nothing)).outcome === 'full')
      return { kind: 'refused', code: 'overloaded', reason: 'lane_full' };
    const known = await answerKnownPayment(context, paid);
    if (known.kind === 'answered') return known.answer;
    // a refusal of this code says why it is not delivered
    if (known.kind === 'recovered' && refusal.code !== 'payment_recovered')
      return { kind: 'refused', code: 'payment_recovered' };
    const { job, decoded } = paid;
    const charged =
      known.kind === 'not_known' &&
      (await findCharged(context, { job, decoded, code: refusal.code }, known.lookUp));
    if (charged) return { kind: 'refused', code: charged };
  }
  return answer;
}

/** Beside 402. After an answer with any other status a client sends the same payment again. */
const signedAnewStatuses: ReadonlySet<number> = new Set([403, 404, 409, 415, 422]);

/**
 * A client over its budget gets its answer, and its refusal is only counted; so is one that a full lane does not take, and one beyond
 * the allowance of strangers, who are all but a caller whose permission was checked. A denied caller is recorded in the quote's own stream only while nothing else has happened to that quote. True where it was appended.
 * @param refuses the request, as its `copyKey` names it, where no copy of it may be started later
 */
export async function recordRefusal(
  context: Pick<RefusalPorts, 'lane' | 'requestTally' | 'rejectionEvents'>,
  request: Pick<OpenedRequest, 'stream' | 'charge'>,
  { record }: Pick<JobRefusal, 'record'>,
  refuses?: string,
): Promise<boolean> {
  if (record.kind === 'none') return false;
  if (record.kind === 'summed' || request.charge.waitSecs() > 0) return sum(context, record);
  const { event } = record;
  const passed = record.kind === 'in_request' && record.passed;
  if (!passed && !context.rejectionEvents.take()) return sum(context, record);
  try {
    if (record.kind === 'in_quote') {
      const { digest, version } = record;
      const appended = await context.lane.append({
        stream: digest,
        expect: version,
        events: [event],
        refuses,
      });
      if (appended.outcome === 'ok') return true;
    }
    const events = passed ? [passed, event] : [event];
    await context.lane.append({ stream: request.stream, events, refuses });
    return true;
  } catch (error) {
    if (!(error instanceof LaneFullError)) throw error;
    return sum(context, record);
  }
}

function sum({ requestTally }: { readonly requestTally: RequestTally }, record: RefusalRecord): false {
  if (record.kind !== 'none')
    requestTally.addRefusal(record.kind === 'summed' ? record.type : record.event.type);
  return false;
}

/** No quote for a request that would be refused when it is paid. */
async function offerJob(context: RefusalPorts, refusal: OfferRefusal): Promise<PaymentRequired | Refused> {
  const { job, named } = refusal;
  if (isRunnerAway(context, job)) return { kind: 'refused', code: 'runner_unavailable' };
  return named ? offerNamed(context, refusal, named) : quoteJob(context, refusal);
}

function errorAnswer(refusal: ErrorRefusal): Refused {
  const { record: _, ...told } = refusal;
  return { ...told, kind: 'refused' };
}

/** How a payment is refused whose payer is charged, or may be. */
type ChargedCode = 'payment_recovered' | 'payment_unrecorded' | 'payment_use_unknown';

interface RefusedPayment {
  readonly job: JobHead['job'];
  readonly decoded: DecodedPayment;
  /** Why it is refused: a machine-readable code. */
  readonly code: string;
}

/**
 * How to refuse a payment that no event names although its payer may have been charged: any account may send a signed
 * authorization to the chain, and a ledger that lost its last events knows neither the quote nor the payment. A payer who does not
 * learn of it signs again and pays twice. Where the payment proves that this ledger has made its offer, its transfer is recorded, and its
 * refund is due. Any other may be of another ledger with the same payee, which has delivered it. Undefined if it was not charged.
 */
async function findCharged(
  context: RefusalPorts,
  refused: RefusedPayment,
  lookUp: KnownPayment,
): Promise<ChargedCode | undefined> {
  const { decoded } = refused;
  const offered = findOffered(context, refused, lookUp);
  // a version 1 payment does not name its token: the one that it was signed for is looked up
  const tokens = offered
    ? [offered.option]
    : tokensOfPayment(decoded, payableTokens(context.settings.acceptedTokens));
  for (const token of tokens) {
    const charged = await findChargedIn(context, refused, token, offered);
    if (charged !== undefined) return charged;
  }
  return undefined;
}

/** What this ledger has offered, and when, in Unix seconds. */
interface Offered {
  readonly option: SettlementOption;
  readonly atSecs: number;
}

/** The option of this ledger's own quote that the payment names, expired or not. */
function findOffered(
  context: RefusalPorts,
  { job, decoded }: RefusedPayment,
  { quote: reading }: KnownPayment,
): Offered | undefined {
  if (!job || decoded.terms?.quoteDigest === undefined) return undefined;
  const { quote } = readNamedQuote(context, job, decoded, reading).state;
  const option = quote && matchOption(decoded, fullOptions(quote).map(optionFromJson));
  return option && { option, atSecs: quote.issued_at };
}

async function findChargedIn(
  context: RefusalPorts,
  refused: RefusedPayment,
  token: PaymentToken,
  offered: Offered | undefined,
): Promise<ChargedCode | undefined> {
  const { decoded } = refused;
  const payment = readSignedPayment(decoded, token);
  const chain = context.chains.get(decoded.network);
  if (!chain || !payment || payment.payTo !== token.payTo) return undefined;
  const signed = await checkSignature(context, payment);
  if (signed.kind !== 'signed') return signed.kind === 'unavailable' ? 'payment_use_unknown' : undefined;
  const atSecs = offered?.atSecs ?? Math.min(nowSecs(context), Number(payment.validBefore));
  const landing = await findLanded(chain, payment, atSecs);
  switch (landing.kind) {
    case 'landed': {
      const { transaction, proof } = landing.settlement;
      if (!proof || !isOfThisLedger(context, refused, payment, proof, offered)) return 'payment_unrecorded';
      return recordCharged(context, refused, payment, { transaction, proof });
    }
    case 'unsure':
      return 'payment_use_unknown';
    case 'not_landed':
      return undefined;
  }
}

/**
 * Whether a landed payment was meant for this ledger: it pays what that has offered, and is not older than the offer. Version 1 names no
 * offer. Of a payee that another ledger has as well nothing is taken: both may have offered the same, and one of them has delivered.
 */
function isOfThisLedger(
  context: RefusalPorts,
  { decoded }: RefusedPayment,
  { amount }: SignedPayment,
  proof: Proof,
  offered: Offered | undefined,
): boolean {
  if (!context.settings.payToExclusive) return false;
  if (!decoded.terms) return true;
  return offered?.option.amount === amount && mayBeOfOffer(proof, offered.atSecs, nowSecs(context));
}

/** Records a refused payment that has landed. What a recovery still searches, it records itself. */
async function recordCharged(
  context: RefusalPorts,
  { decoded, code }: RefusedPayment,
  payment: SignedPayment,
  { transaction, proof }: { readonly transaction: Hex; readonly proof: Proof },
): Promise<ChargedCode> {
  if (await context.lostPayments.mayHold(payment, context.settings.maxTimeoutSecs))
    return 'payment_unrecorded';
  const quoteDigest = decoded.terms?.quoteDigest;
  const refused = {
    code,
    valid_before: String(payment.validBefore),
    ...(quoteDigest === undefined ? {} : { quote_digest: quoteDigest }),
  };
  const command = recoverPayment(
    { ...payment, amount: proof.value ?? payment.amount, transaction, place: proof },
    { refused },
  );
  const { outcome } = await context.lane.append(command, { urgent: true });
  if (outcome !== 'ok') return 'payment_unrecorded';
  context.log.warn(
    { payer: payment.payer, transaction, code },
    'a payment was refused, and the chain shows that it has landed: its refund is due',
  );
  return 'payment_recovered';
}
