import { ofPayment, paymentFromData, type SignedPayment } from '../domain/payments/payment.ts';
import type { Hex } from '../domain/values/primitives.ts';
import { foldQuote, type PaymentState, paymentOf, type QuoteState } from '../domain/payments/quote-state.ts';
import { facilitatorMarginSecs } from '../domain/payments/facilitator-margin.ts';
import type { FollowUp } from '../store/follow-ups.ts';
import { paymentKey, readStream } from '../store/streams.ts';
import { postponeUnsettled, type UnsettledCall } from '../store/unsettled.ts';
import { findSettlement } from './find-settlement.ts';
import { type JobsContext, nowSecs } from './context.ts';
import { askToSettle } from './settle-payment.ts';
import { type Outcome, recordOutcome, type StartedPayment } from './settlement-outcome.ts';

/** What an open settlement is found by; without a call where a runner has that already. */
export type OpenSettlement = Pick<UnsettledCall, 'stream' | 'payment' | 'ageSecs'> &
  Partial<Pick<UnsettledCall, 'callId'>>;

/** Settling again may take long: only so many at once, and the others wait for their next look. */
export interface SettleSlots {
  /** Undefined where there is no room. */
  use<T>(settle: () => Promise<T>): Promise<T | undefined>;
}

/** A payment of unknown outcome, with all that is needed to find it out. */
interface Unresolved {
  readonly open: OpenSettlement;
  readonly started: StartedPayment;
  readonly story: QuoteState;
  readonly known: PaymentState;
}

/** The settle that was just asked for has probably landed by then. */
const soonMs = 1_000;
/** The longest pause between two looks. */
const longestMs = 60_000;
/** Long after its time, where no chain can say that it is over. */
const givenUpSecs = 3_600;
/** Beyond its time-outs, a settle that this or another process asked for is no longer under way. */
const graceSecs = 5;

/**
 * Finds out what became of one open settlement and records it. Paid: settled and enqueued. Never to be paid: failed. Not
 * paid yet: the same payment is settled again, which can move its money only once. Otherwise it stays open for the next
 * look. Several processes may do this at once, and the request itself beside them: stream versions and claims decide.
 */
export async function resolveSettlement(
  context: JobsContext,
  open: OpenSettlement,
  slots: SettleSlots,
): Promise<void> {
  const unresolved = await readUnresolved(context, open);
  if (!unresolved) return;
  const { started } = unresolved;
  const outcome = await findOutcome(context, unresolved, slots);
  if (typeof outcome === 'string') return noteOverdue(context, unresolved, outcome);
  if (outcome.kind === 'void' && unresolved.known.status === 'settlement_failed') {
    // it was told so already, and now it is certain: nobody will want its call any more
    const { digest, callId } = started;
    if (callId !== undefined)
      await context.lane.append(
        { stream: digest, events: [], call: { op: 'remove', callId } },
        { urgent: true },
      );
    return;
  }
  const recorded = await recordOutcome(context, started, outcome);
  if (recorded.kind === 'unknown') return noteOverdue(context, unresolved, recorded.reason);
  context.log.info({ quote_digest: started.digest, outcome: recorded.kind }, 'a settlement was resolved');
}

/**
 * The same for a payment that was taken back while a runner had its call: it is found by the event that says so. True where
 * nothing is left to look after.
 */
export async function resolveKept(
  context: JobsContext,
  { stream, seq, ageSecs }: Pick<FollowUp, 'stream' | 'seq' | 'ageSecs'>,
  slots: SettleSlots,
): Promise<boolean> {
  const known = await findKept(context, stream, seq);
  if (!known?.call || known.status === 'settled' || known.status === 'settlement_failed') return true;
  const payment = paymentKey(paymentFromData(known.payment));
  await resolveSettlement(context, { stream, payment, ageSecs }, slots);
  return false;
}

/** The payment that an event of its stream speaks of, as it stands now. */
export async function findKept(
  context: Pick<JobsContext, 'pool'>,
  stream: string,
  seq: number,
): Promise<PaymentState | undefined> {
  const { events } = await readStream(context.pool, stream);
  const event = events.find((candidate) => candidate.seq === seq);
  if (event?.type !== 'settlement_disproved' && event?.type !== 'settlement_reorged') return undefined;
  return paymentOf(foldQuote(events), { ...event.data, nonce: event.data.payment_nonce });
}

async function readUnresolved(context: JobsContext, open: OpenSettlement): Promise<Unresolved | undefined> {
  const digest = open.stream as Hex;
  const story = foldQuote((await readStream(context.pool, digest)).events);
  const known = story.payments.find(({ payment }) => paymentKey(paymentFromData(payment)) === open.payment);
  if (!known) return undefined;
  if (known.status === 'settled') {
    if (open.callId !== undefined)
      context.log.error({ quote_digest: digest }, 'a settled payment has a call that is held');
    return undefined;
  }
  // without its call a payment is only looked after where a runner has that
  if (open.callId === undefined && !known.call) return undefined;
  const payment = paymentFromData(known.payment);
  return { open, story, known, started: { digest, payment, callId: open.callId, version: story.version } };
}

/** What can be recorded of a payment; a machine word where nothing can yet. */
async function findOutcome(
  context: JobsContext,
  unresolved: Unresolved,
  slots: SettleSlots,
): Promise<Outcome | string> {
  const { started, known, story } = unresolved;
  const { payment } = started;
  const chain = context.chains.get(payment.network);
  if (!chain) {
    const isOver = BigInt(nowSecs(context)) > payment.validBefore + BigInt(givenUpSecs);
    // its client was told that it failed, and nobody will ever say otherwise
    if (isOver && known.status === 'settlement_failed')
      return { kind: 'void', reason: 'authorization_expired' };
    if (!maySettle(context, unresolved)) return known.reason ?? 'no_rpc';
    // with no chain to ask, the facilitator's word is all there is
    const outcome = await slots.use(() => settleAgain(context, unresolved));
    return outcome?.kind === 'settled' ? outcome : 'no_rpc';
  }
  const quotedAtSecs = story.quote?.issued_at ?? 0;
  const found = await findSettlement(chain, payment, known.hints, quotedAtSecs);
  switch (found.kind) {
    case 'paid':
      return { kind: 'settled', transaction: found.transaction, proof: found.proof };
    case 'void':
      return found;
    case 'undecided':
      return found.reason;
    case 'unused': {
      if (!maySettle(context, unresolved)) return known.reason ?? 'not_settled';
      // its answer is not believed: a failure may be the first one's success, and a success is on the chain
      const outcome = await slots.use(() => settleAgain(context, unresolved));
      return outcome?.kind === 'settled' && outcome.proof ? outcome : (known.reason ?? 'not_settled');
    }
  }
}

async function settleAgain(context: JobsContext, { open, started }: Unresolved): Promise<Outcome> {
  const { facilitatorSettleTimeoutMs: settleTimeoutMs } = context.settings;
  const { callId, ageSecs } = open;
  // nobody else asks for the same meanwhile
  if (callId !== undefined) await postponeUnsettled(context.pool, callId, settleTimeoutMs + soonMs);
  context.log.info({ quote_digest: started.digest }, 'a payment of unknown outcome is settled again');
  const outcome = await askToSettle(context, started, { isRepeated: true });
  const isUnderWay = outcome.kind === 'settled' || (outcome.kind === 'unknown' && outcome.transaction);
  const pauseMs = isUnderWay ? soonMs : Math.min(Math.max(soonMs, ageSecs * 250), longestMs);
  if (callId !== undefined) await postponeUnsettled(context.pool, callId, Math.round(pauseMs));
  return outcome;
}

/**
 * Whether settling again can help and harm nobody: never for a payment whose client was told that it failed and may
 * have signed another, nor while the first settle may still be under way.
 */
function maySettle(context: JobsContext, { open, started, known }: Unresolved): boolean {
  const { payment, digest } = started;
  if (known.status === 'settlement_failed' || context.stopping() || context.settling.has(digest))
    return false;
  if (context.facilitator.isCircuitOpen() || !isInTime(context, payment)) return false;
  const { facilitatorSettleTimeoutMs: settleTimeoutMs } = context.settings;
  const underWaySecs = (settleTimeoutMs + context.settings.confirmTimeoutMs) / 1_000 + graceSecs;
  return known.status === 'settlement_unknown' || open.ageSecs > underWaySecs;
}

function isInTime(context: JobsContext, { validAfter, validBefore }: SignedPayment): boolean {
  const now = BigInt(nowSecs(context));
  return validAfter < now && validBefore > now + BigInt(facilitatorMarginSecs);
}

/** Says once, in the ledger, that a payment takes too long: the operator is alerted from there. */
async function noteOverdue(
  context: JobsContext,
  { open, started, known }: Unresolved,
  reason: string,
): Promise<void> {
  const isLate = open.ageSecs > context.config.alerts.unresolvedAfterSecs;
  if (!isLate || known.isOverdue || known.status === 'settlement_failed') return;
  const { digest, payment, version } = started;
  const age_secs = Math.floor(open.ageSecs);
  const data = { ...ofPayment(payment), age_secs, reason };
  const event = { type: 'settlement_overdue', data } as const;
  const { outcome } = await context.lane.append(
    { stream: digest, expect: version, events: [event] },
    { urgent: true },
  );
  if (outcome !== 'ok') return;
  context.log.error(
    { quote_digest: digest, age_secs, reason },
    'a settlement has been open for too long: see `tollbook settlements`',
  );
}
