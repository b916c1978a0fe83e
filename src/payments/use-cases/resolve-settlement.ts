import { paymentFromData, type SignedPayment } from '../rules/payment.ts';
import type { Caip2, Hex } from '../../base/values/primitives.ts';
import type { Chain } from '../peers/chain/chain.ts';
import { foldQuote, type PaymentState, type QuoteState, paymentOf } from '../rules/quote-state.ts';
import { facilitatorMarginSecs } from '../../base/values/facilitator-margin.ts';
import { type HeldCall, type Outcome, settlementState } from '../rules/settlement.ts';
import { runIn, type Tracing } from '../../base/values/tracing.ts';
import type { FollowUp } from '../store/follow-ups.ts';
import { readStream } from '../../ledger/store/streams.ts';
import { paymentKey } from '../store/claims.ts';
import { LedgerInconsistentError } from '../../ledger/store/halt.ts';
import { readHalt } from '../../ledger/store/recovery.ts';
import { findUnsettled, postponeUnsettled, type UnsettledCall } from '../store/unsettled.ts';
import { findSettlement } from './find-settlement.ts';
import { nowSecs } from '../../ledger/store/ledger.ts';
import type { Config } from '../../base/config/config.ts';
import type { LedgerDatabase } from '../../ledger/store/database.ts';
import { requestSettlement, type SettlementPorts } from './settle-payment.ts';
import { underWaySecs } from '../rules/payment-window.ts';
import {
  recordDecision,
  recordOutcome,
  type RecordPorts,
  type StartedPayment,
  type Superseded,
} from './record-settlement.ts';
import type pg from 'pg';

/** Names an open settlement; without its call if that was taken back while a runner had it. */
export type OpenSettlement = Pick<UnsettledCall, 'stream' | 'payment' | 'ageSecs'> &
  Partial<Pick<UnsettledCall, 'traceparent'>> &
  (Pick<UnsettledCall, 'callId' | 'attempt'> | { readonly callId?: undefined });

export interface LookPorts extends RecordPorts {
  readonly db: LedgerDatabase;
  readonly chains: ReadonlyMap<Caip2, Chain>;
}

export interface ResolutionPorts extends SettlementPorts, LookPorts {
  readonly config: Config;
  /** Payments that this process is settling now, by stream. */
  readonly settling: ReadonlyMap<string, Promise<unknown>>;
  readonly stopping: () => boolean;
  readonly tracing?: Tracing | undefined;
}

/** Limits the simultaneous settle requests, since each may take long: undefined if all slots are taken. */
export type SettleSlots = <T>(settle: () => Promise<T>) => Promise<T | undefined>;

/** A payment without an outcome, with all that is needed to find it. */
interface Unresolved {
  readonly open: OpenSettlement;
  readonly started: StartedPayment;
  readonly quote: QuoteState;
  readonly known: PaymentState;
}

/** What can be recorded, or why the settlement stays open. */
type Finding = Outcome | { readonly kind: 'open'; readonly reason: string };

/** A transfer that was just broadcast has probably landed after this time. */
const landedAfterMs = 1_000;
/** The longest pause between two attempts. */
const longestPauseMs = 60_000;
/** How much further back than its age the use of an open payment's nonce is searched: an hour later, a day back. */
const furtherBack = 24;
/** Without a chain to ask, a failed payment counts as void this long after it expired. */
const voidAfterSecs = 3_600;

/**
 * Finds the outcome of one open settlement and records it. Paid: settled and enqueued. Never to be paid: failed. Not paid yet:
 * the same payment is settled again, which can move its money only once. Otherwise it stays open for the next attempt. Several
 * processes may do this simultaneously, as may the request itself: stream versions and claims decide. If the request was traced, each look
 * is a separate trace with a link to it.
 */
export function resolveSettlement(
  context: ResolutionPorts,
  open: OpenSettlement,
  slots: SettleSlots,
): Promise<void> {
  const { traceparent: link } = open;
  const name = 'resolve settlement';
  const span = link === undefined ? undefined : context.tracing?.beginFrom({ name }, { link });
  const work = (): Promise<void> => resolve(context, open, slots);
  return span ? runIn(span, work) : work();
}

async function resolve(context: ResolutionPorts, open: OpenSettlement, slots: SettleSlots): Promise<void> {
  const unresolved = await findUnresolved(context, open);
  if (!unresolved) return;
  const { started } = unresolved;
  const found = await findOutcome(context, unresolved, slots);
  if (unresolved.known.status === 'authorized' && found.kind !== 'settled')
    return endUnanswered(context, unresolved, found);
  if (found.kind === 'open') return noteOverdue(context, unresolved, found.reason);
  const recorded = await recordOutcome(context, started, found);
  if (recorded.kind === 'unknown') return noteOverdue(context, unresolved, recorded.reason);
  context.log.info({ quote_digest: started.digest, outcome: recorded.kind }, 'a settlement was resolved');
}

/**
 * Nothing settles a payment whose upstream is asked. Once no attempt is under way and its authorization is too old for another one, it
 * is on record as failed, and watched as any other.
 */
async function endUnanswered(
  context: ResolutionPorts,
  { started, known }: Unresolved,
  found: Finding,
): Promise<void> {
  const isUnderWay = nowSecs(context) < (known.upstream?.endsAt ?? 0);
  const isRepeatable = found.kind !== 'void' && isInTime(context, started.state.payment);
  if (isUnderWay || isRepeatable) return;
  await recordDecision(context, started, { kind: 'not_charged', reason: 'upstream_lost' });
}

/** What the chain says of a payment that is on record as failed. */
export type FailedLook = 'landed' | 'not_landed' | 'unsure';

/**
 * Looks on the chain for a payment that was reported as failed, and records it if it has landed after all: its call is released. The
 * resolver does the same in its own time; a client that presents the payment again must not get an answer meanwhile that makes it sign another.
 */
export async function lookAtFailed(
  context: LookPorts,
  digest: Hex,
  { quote, version }: QuoteState,
  known: PaymentState,
): Promise<FailedLook> {
  const payment = paymentFromData(known.payment);
  const chain = context.chains.get(payment.network);
  if (!chain) return 'not_landed';
  const found = await findSettlement(chain, payment, known.hints, quote?.issued_at ?? 0);
  switch (found.kind) {
    case 'void':
    case 'unused':
      return 'not_landed';
    case 'undecided':
      return 'unsure';
    case 'paid': {
      const [held] = await findUnsettled(context.db, digest);
      const state = settlementState(known, held && { callId: held.call_id, attempt: held.attempt });
      const { transaction, proof } = found;
      const outcome = { kind: 'settled', transaction, proof } as const;
      const recorded = await recordOutcome(context, { digest, version, state }, outcome);
      return recorded.kind === 'unknown' ? 'unsure' : 'landed';
    }
  }
}

export type FollowUpResult = { readonly kind: 'done' } | { readonly kind: 'look_again' };

/** The same for a payment that was taken back while a runner had its call. The event that took it back names it. */
export async function resolveTakenBack(
  context: ResolutionPorts,
  { stream, seq, ageSecs }: Pick<FollowUp, 'stream' | 'seq' | 'ageSecs'>,
  slots: SettleSlots,
): Promise<FollowUpResult> {
  const { known } = await findTakenBack(context, stream, seq);
  if (!known || !canBeOpen(known) || known.status === 'settled' || known.status === 'settlement_failed')
    return { kind: 'done' };
  const payment = paymentKey(paymentFromData(known.payment));
  await resolveSettlement(context, { stream, payment, ageSecs }, slots);
  return { kind: 'look_again' };
}

async function findUnresolved(
  context: ResolutionPorts,
  open: OpenSettlement,
): Promise<Unresolved | undefined> {
  const digest = open.stream as Hex;
  const quote = foldQuote((await readStream(context.pool, digest)).events);
  const known = findByKey(quote, open.payment);
  if (!known) return undefined;
  if (known.status === 'settled') {
    if (open.callId !== undefined && known.recovered?.redelivery && !known.call) {
      // its request ended between the two appends
      const started = { digest, version: quote.version, state: settlementState(known, open) };
      const released = await recordDecision(context, started, { kind: 'redelivery' });
      if (released.kind === 'recorded') context.onCallReleased();
    } else if (open.callId !== undefined)
      context.log.error(
        { quote_digest: digest },
        'a payment is settled, and its call still waits for the settlement',
      );
    return undefined;
  }
  if (open.callId === undefined && !canBeOpen(known)) return undefined;
  const held = open.callId === undefined ? await findKeptCall(context, digest, known) : open;
  const state = settlementState(known, held);
  return { open, quote, known, started: { digest, version: quote.version, state } };
}

/** Whether a payment without a waiting call may be open: a runner has or had its call, or it was recovered and its block replaced. */
function canBeOpen({ call, recovered }: PaymentState): boolean {
  return call !== undefined || recovered !== undefined;
}

/** The call that was taken back while a runner had it, as long as it can still be delivered. */
async function findKeptCall(
  { db }: ResolutionPorts,
  digest: Hex,
  { call }: PaymentState,
): Promise<HeldCall | undefined> {
  const rows = call ? await findUnsettled(db, digest) : [];
  const row = rows.find(({ call_id, status }) => call_id === call?.callId && status !== 'watched');
  return row && { callId: row.call_id, attempt: row.attempt };
}

async function findOutcome(
  context: ResolutionPorts,
  unresolved: Unresolved,
  slots: SettleSlots,
): Promise<Finding> {
  const { open, started, known, quote } = unresolved;
  const { payment } = started.state;
  const chain = context.chains.get(payment.network);
  if (!chain) {
    const isOver = BigInt(nowSecs(context)) > payment.validBefore + BigInt(voidAfterSecs);
    // the client already has an answer that it failed, and without a chain nothing can contradict that
    if (isOver && known.status === 'settlement_failed')
      return { kind: 'void', reason: 'authorization_expired' };
    if (!maySettle(context, unresolved)) return stillOpen(known, 'no_rpc');
    // without a chain, the facilitator's answer is the only evidence
    const again = await slots(() => settleAgain(context, unresolved));
    return again?.kind === 'settled' ? again : { kind: 'open', reason: 'no_rpc' };
  }
  // a nonce that was used long before the quote is found by looking further back each time
  const sinceSecs = (quote.quote?.issued_at ?? 0) - Math.floor(open.ageSecs) * furtherBack;
  const found = await findSettlement(chain, payment, known.hints, sinceSecs);
  switch (found.kind) {
    case 'paid':
      return { kind: 'settled', transaction: found.transaction, proof: found.proof };
    case 'void':
      return found;
    case 'undecided':
      return { kind: 'open', reason: found.reason };
    case 'unused': {
      if (!maySettle(context, unresolved)) return stillOpen(known, 'not_settled');
      // the answer alone proves nothing: its failure may be the first request's success, and a success is on the chain
      const again = await slots(() => settleAgain(context, unresolved));
      return again?.kind === 'settled' && again.proof ? again : stillOpen(known, 'not_settled');
    }
  }
}

function stillOpen({ reason }: PaymentState, otherwise: string): Finding {
  return { kind: 'open', reason: reason ?? otherwise };
}

/**
 * Settles an open payment once more. The process that started it may have got a definite failure that is not recorded yet. An
 * outcome on record makes that verdict void, so one is appended before money can move: only then is the request sent.
 */
async function settleAgain(
  context: ResolutionPorts,
  { open, started, known }: Unresolved,
): Promise<Outcome | Superseded> {
  if (known.status === 'settling') {
    const recorded = await recordOutcome(context, started, {
      kind: 'unknown',
      reason: 'no_outcome_recorded',
    });
    if (recorded.kind !== 'unknown') return { kind: 'superseded' };
  }
  const { facilitatorSettleTimeoutMs: settleTimeoutMs } = context.settings;
  const { callId, ageSecs } = open;
  // other processes do not settle it meanwhile
  if (callId !== undefined) await postponeUnsettled(context.pool, callId, settleTimeoutMs + landedAfterMs);
  // another process may have noticed since this call was taken that the ledger lost events, and this one not yet
  const halt = await readHalt(context.pool);
  if (halt) throw new LedgerInconsistentError(halt);
  context.log.info({ quote_digest: started.digest }, 'settling an unknown settlement again');
  const outcome = await requestSettlement(context, started, { isRepeated: true });
  const isUnderWay = outcome.kind === 'settled' || (outcome.kind === 'unknown' && outcome.transaction);
  const pauseMs = isUnderWay
    ? landedAfterMs
    : Math.min(Math.max(landedAfterMs, ageSecs * 250), longestPauseMs);
  if (callId !== undefined) await postponeUnsettled(context.pool, callId, Math.round(pauseMs));
  return outcome;
}

/**
 * Whether settling again is safe: never for a payment that was reported as failed, since its client may have signed another,
 * nor while the first settle request may still be running.
 */
function maySettle(context: ResolutionPorts, { open, started, known }: Unresolved): boolean {
  const { digest, state } = started;
  if (
    known.status === 'authorized' ||
    known.status === 'settlement_failed' ||
    known.recovered ||
    context.stopping() ||
    context.settling.has(digest)
  )
    return false;
  if (!context.facilitators.canSettle({ name: state.facilitator }) || !isInTime(context, state.payment))
    return false;
  return known.status === 'settlement_unknown' || open.ageSecs > underWaySecs(context.settings);
}

function isInTime(context: ResolutionPorts, { validAfter, validBefore }: SignedPayment): boolean {
  const now = BigInt(nowSecs(context));
  return validAfter < now && validBefore > now + BigInt(facilitatorMarginSecs);
}

/** Records once that a payment takes too long: the alert to the operator follows from that event. */
async function noteOverdue(
  context: ResolutionPorts,
  { open, started }: Unresolved,
  reason: string,
): Promise<void> {
  if (open.ageSecs <= context.config.alerts.unresolvedAfterSecs) return;
  const ageSecs = Math.floor(open.ageSecs);
  const recorded = await recordDecision(context, started, { kind: 'overdue', ageSecs, reason });
  if (recorded.kind !== 'recorded') return;
  context.log.error(
    { quote_digest: started.digest, age_secs: ageSecs, reason },
    'a settlement has been open for too long',
  );
}

/** The payment of a quote with this key, as `paymentKey()` makes it. */
export function findByKey(quote: QuoteState, key: string): PaymentState | undefined {
  const { payment } = quote;
  return payment && paymentKey(paymentFromData(payment.payment)) === key ? payment : undefined;
}

/** The payment that a `settlement_disproved` or `settlement_reorged` names, in its current state, and its quote. */
export async function findTakenBack(
  { pool }: { readonly pool: pg.Pool },
  stream: string,
  seq: number,
): Promise<{ readonly quote: QuoteState; readonly known: PaymentState | undefined }> {
  const { events } = await readStream(pool, stream);
  const event = events.find((candidate) => candidate.seq === seq);
  const quote = foldQuote(events);
  if (event?.type !== 'settlement_disproved' && event?.type !== 'settlement_reorged')
    return { quote, known: undefined };
  return { quote, known: paymentOf(quote, { ...event.data, nonce: event.data.payment_nonce }) };
}
