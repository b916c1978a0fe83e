import type { RecordedEvent } from '../../../src/ledger/rules/event.ts';
import type { Attempt, Records, Presentation } from '../records.ts';
import { isDefinite } from '../client.ts';
import { isOwnRequest, type RecordedPayment } from './payments.ts';
import type { Landed } from './transfers.ts';
import type { Violation } from './violation.ts';

interface Facts {
  readonly records: Records;
  readonly transfers: readonly Landed[];
  readonly payments: ReadonlyMap<string, RecordedPayment>;
  readonly events: readonly RecordedEvent[];
  /** Payments by upto of which more was moved than was used. */
  readonly tooMuch: ReadonlySet<string>;
  /** When the faults ended. */
  readonly quietSince: number;
}

/** Compares the answers that clients received with what happened to their money. */
export function* answerViolations(facts: Facts): Generator<Violation> {
  const { records, transfers, payments } = facts;
  const landed = new Set(transfers.map(({ key }) => key));
  for (const presentation of records.presentations) {
    const payment = payments.get(presentation.signed.key);
    const isOwn = isOwnRequest(payment, presentation);
    yield* acceptanceViolations(presentation, payment, isOwn);
    if (isOwn && landed.has(presentation.signed.key) && presentation.end === 'unanswered') {
      yield { kind: 'never_answered', words: `${presentation.scenario}: ${presentation.signed.key} is paid` };
    }
  }
  for (const { presentation, attempt, isExcused } of refusalsOfPaid(facts)) {
    if (isExcused) continue;
    yield refusedThoughPaid(presentation, attempt);
  }
  for (const { presentation, attempt } of refusalsOfLanded(facts))
    yield refusedThoughPaid(presentation, attempt);
}

function refusedThoughPaid({ scenario, signed }: Presentation, attempt: Attempt): Violation {
  const words = `${scenario}: ${signed.key} is paid, and was answered ${attempt.status} ${attempt.code ?? ''} ${attempt.reason ?? ''}`;
  return { kind: 'refused_though_paid', words };
}

/** Of what a gateway was asked before the faults ended, some was answered later. */
const quietAfterMs = 1_000;

/**
 * Refusals of payments that a third party had landed before the request, when nothing kept the gateways from the chain any more. Only that a
 * refund is due may be said then.
 */
function* refusalsOfLanded({ records, transfers, payments, quietSince }: Facts) {
  const landed = new Set(transfers.map(({ key }) => key));
  for (const presentation of records.presentations) {
    const { key } = presentation.signed;
    const landedAt = records.landedLate.get(key);
    if (landedAt === undefined || !landed.has(key) || !isOwnRequest(payments.get(key), presentation))
      continue;
    for (const attempt of presentation.attempts.filter(isDefinite))
      if (
        attempt.sentAt > Math.max(landedAt, quietSince + quietAfterMs) &&
        attempt.code !== 'payment_recovered'
      )
        yield { presentation, attempt };
  }
}

/** The number of refusals of landed payments that were decided before the payment was started. */
export function countExcused(facts: Facts): number {
  return [...refusalsOfPaid(facts)].filter(({ isExcused }) => isExcused).length;
}

/** Definite refusals that went to the payer of a landed payment. */
function* refusalsOfPaid({ records, transfers, payments, events, tooMuch }: Facts) {
  const landed = new Set(transfers.map(({ key }) => key));
  const refusals = events.filter(isRefusal);
  for (const presentation of records.presentations) {
    const { key } = presentation.signed;
    const payment = payments.get(key);
    // a refusal that was true when it was sent is not a violation: a third party landed the payment afterwards
    if (!landed.has(key) || records.landedLate.has(key) || !isOwnRequest(payment, presentation)) continue;
    for (const attempt of presentation.attempts.filter(isDefinite)) {
      // never started, and landed all the same: its refund is due, which the check of the money looks for; so is that of one that moved too much
      const isExcused =
        payment && !tooMuch.has(key) && !isFalseRejection(records, presentation, attempt)
          ? wasDecidedBefore(records, payment, presentation, attempt, refusals)
          : attempt.code === 'payment_recovered';
      yield { presentation, attempt, isExcused };
    }
  }
}

function* acceptanceViolations(
  { scenario, signed, attempts }: Presentation,
  payment: RecordedPayment | undefined,
  isOwn: boolean,
): Generator<Violation> {
  for (const { status, callId } of attempts) {
    if (status !== 202) continue;
    const words = `${scenario}: ${signed.key} was answered 202 with call ${callId}`;
    if (!isOwn) yield { kind: 'accepted_for_another_request', words };
    // a repetition of version 1 gets its status alone
    else if (callId === undefined ? !payment?.everEnqueued.length : !payment?.everEnqueued.includes(callId))
      yield { kind: 'accepted_without_call', words };
  }
}

type Refusal = Extract<RecordedEvent, { type: 'payment_rejected' | 'request_refused' | 'auth_denied' }>;

function isRefusal(event: RecordedEvent): event is Refusal {
  return (
    event.type === 'payment_rejected' || event.type === 'request_refused' || event.type === 'auth_denied'
  );
}

/**
 * A third party had landed the payment before anyone verified it, so that no answer to that may call it invalid: also without the chain. Its
 * times are judged before that, and falsely while a clock is wrong.
 */
function isFalseRejection(
  { landedBeforeVerify }: Records,
  { signed }: Presentation,
  { code, reason }: Attempt,
): boolean {
  const isOfTimes = reason?.startsWith('authorization_') === true;
  return landedBeforeVerify.has(signed.nonce) && code === 'payment_invalid' && !isOfTimes;
}

/**
 * A refusal that was decided before the payment was started was true when it was sent: another request of the same client
 * started the payment later. When the answer arrived after the start, the ledger must show that order.
 */
function wasDecidedBefore(
  { startSentAt }: Records,
  { startedSeq, stream }: RecordedPayment,
  { version, signed }: Presentation,
  attempt: Attempt,
  refusals: readonly Refusal[],
): boolean {
  if (attempt.endedAt < (startSentAt.get(signed.nonce) ?? 0)) return true;
  return refusals.some(({ seq, data }) => {
    const reported = 'code' in data ? data.code : data.reason;
    const isSame = reported === attempt.reason || reported === attempt.code;
    // a version 1 payment gets its own quote with each request
    const isOfQuote = version === 1 || data.quote_digest === stream;
    const isOfPayer =
      !('payer' in data) || data.payer === undefined || data.payer === signed.payer.toLowerCase();
    return isSame && isOfQuote && isOfPayer && seq < startedSeq;
  });
}
