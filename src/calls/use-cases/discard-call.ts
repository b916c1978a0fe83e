import type { EventData, LedgerEvent } from '../../ledger/rules/event.ts';
import { foldQuote } from '../../payments/rules/quote-state.ts';
import { remainingAtoms } from '../../payments/rules/refund.ts';
import { isTriggeredStream } from '../../base/values/triggers/trigger.ts';
import { findCall } from '../store/calls.ts';
import { readStream } from '../../ledger/store/streams.ts';
import { type Ledger, nowSecs } from '../../ledger/store/ledger.ts';
import type { JobsConfig } from '../../base/config/config.ts';
import { jobKey } from '../../base/values/job.ts';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import { findOldDeadLetters } from '../store/dead-letters.ts';
import {
  type BatchReport,
  type BatchStep,
  changeDeadLetters,
  changeEach,
  type DeadLetterBatch,
  maxChanged,
} from './dead-letters.ts';

/** The operator who gives a call up, and the reason. */
export type DiscardRecord = Omit<EventData<'operator_discarded'>, 'call_id'>;

export type DiscardResult =
  /** `none`: no payer paid for it. `refunded`: the whole payment. */
  | { readonly kind: 'discarded'; readonly money: 'none' | 'refund_due' | 'refunded' }
  /** It was completed, discarded, or never paid. */
  | { readonly kind: 'not_found' }
  /** A runner has it under a lease: it can still be completed. */
  | { readonly kind: 'with_runner' };

/**
 * Gives a call up, on the operator's word: it leaves the queue for good, and its refund is due if it was paid, with who decided that and why on
 * record. A call that still waits becomes a dead letter in the same step.
 */
export async function discardCall(
  context: Ledger,
  callId: number,
  by: DiscardRecord,
): Promise<DiscardResult> {
  const call = await readCall(context, callId);
  if (call?.status !== 'ready' && call?.status !== 'leased' && call?.status !== 'dead')
    return { kind: 'not_found' };
  const dead: LedgerEvent = {
    type: 'dead_lettered',
    data: { call_id: callId, attempt: call.attempt, reason: 'discarded' },
  };
  const outcome = await append(context, call, by, call.status === 'dead' ? [] : [dead]);
  if (outcome === 'ok') return { kind: 'discarded', money: moneyOf(call) };
  if (outcome === 'stale' || (await findCall(context.db, callId))?.status !== 'leased')
    return discardCall(context, callId, by);
  return { kind: 'with_runner' };
}

function moneyOf({ stream, events }: ReadCall): 'none' | 'refund_due' | 'refunded' {
  if (isTriggeredStream(stream)) return 'none';
  const { payment } = foldQuote(events);
  return payment && remainingAtoms(payment) === 0n ? 'refunded' : 'refund_due';
}

/** Gives a dead letter up. One that was requeued meanwhile stays in the queue. */
async function discardDeadLetter(
  context: Ledger,
  callId: number,
  by: DiscardRecord,
): Promise<BatchStep<'not_dead'>> {
  const call = await readCall(context, callId);
  if (call?.status !== 'dead') return { kind: 'skipped', why: 'not_dead' };
  const outcome = await append(context, call, by, []);
  return outcome === 'ok' ? { kind: 'done' } : discardDeadLetter(context, callId, by);
}

type ReadCall = NonNullable<Awaited<ReturnType<typeof readCall>>>;

/** Its state is read after its stream: any event that makes or ends a dead letter moves the version. */
async function readCall({ db, pool }: Ledger, callId: number) {
  const named = await findCall(db, callId);
  if (!named) return undefined;
  const { events } = await readStream(pool, named.stream);
  const call = await findCall(db, callId);
  return call && { ...call, callId, events, version: events.at(-1)?.version ?? 0 };
}

async function append(
  { lane }: Ledger,
  { callId, stream, version }: ReadCall,
  by: DiscardRecord,
  before: readonly LedgerEvent[],
): Promise<string> {
  const { outcome } = await lane.append({
    stream,
    expect: version,
    events: [...before, { type: 'operator_discarded', data: { call_id: callId, ...by } }],
    call: { op: 'discard', callId },
  });
  return outcome;
}

export interface DiscardBatch extends DeadLetterBatch {
  /** Nothing is changed: the report says what would be. */
  readonly isDryRun: boolean;
  readonly by: DiscardRecord;
}

/** `not_dead`: it was requeued or discarded meanwhile. */
export type DiscardReport = BatchReport<'not_dead'>;

/** Gives up one batch of the dead letters that are meant. */
export async function discardCalls(context: Ledger, batch: DiscardBatch): Promise<DiscardReport> {
  return changeDeadLetters(context.db, batch, async (callId) =>
    batch.isDryRun ? { kind: 'done' } : discardDeadLetter(context, callId, batch.by),
  );
}

export interface PolicyPorts extends Ledger {
  readonly settings: JobsConfig;
  readonly log: OperatorLog;
}

/**
 * Gives up the dead letters that the policies of their jobs do not keep: one batch of each job. Returns whether there may be more. Many
 * processes may do it at the same time: each call is given up once.
 */
export async function discardByPolicy(context: PolicyPorts): Promise<boolean> {
  let isMore = false;
  for (const policy of context.settings.jobPolicies.values()) {
    const { serviceId, jobIndex, discardAfterSecs } = policy;
    if (discardAfterSecs === undefined) continue;
    const before = new Date((nowSecs(context) - discardAfterSecs) * 1_000);
    const job = jobKey(policy);
    const why = `the policy of job ${job} gives dead letters up after ${discardAfterSecs} seconds`;
    const old = await findOldDeadLetters(context.db, { serviceId, jobIndex }, before, maxChanged);
    const { done } = await changeEach(old, (callId) =>
      discardDeadLetter(context, callId, { why, operator: 'policy' }),
    );
    if (done > 0) context.log.info({ job, calls: done }, 'dead letters given up by the policy of their job');
    isMore ||= old.length === maxChanged;
  }
  return isMore;
}
