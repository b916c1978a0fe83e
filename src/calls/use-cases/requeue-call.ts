import type { EventData } from '../../ledger/rules/event.ts';
import { grant } from '../../payments/rules/deliver-or-refund.ts';
import { foldQuote, type PaymentState } from '../../payments/rules/quote-state.ts';
import { isTriggeredStream } from '../../base/values/triggers/trigger.ts';
import { findCall } from '../store/calls.ts';
import { readStream } from '../../ledger/store/streams.ts';
import type { Ledger } from '../../ledger/store/ledger.ts';
import { type BatchReport, changeDeadLetters, type DeadLetterBatch } from './dead-letters.ts';
import type { LaneCommand } from '../../ledger/store/append-batch.ts';

/** Why a call is not put back in the queue, in words. */
export const notRequeuedTexts = {
  not_dead: 'it is no longer a dead letter',
  // or a part of it
  refunded: 'its payment was refunded, so it is not delivered',
  // neither recorded nor given up yet
  refund_under_way: 'a refund of its payment is being sent, so it is not delivered',
  // its settlement was taken back, and it is not settled again
  unpaid: 'its payment is not settled at present: wait, the gateway looks for the outcome',
} as const;

interface RequeueRefusal {
  readonly kind: keyof typeof notRequeuedTexts;
}

/** The operator who puts it back: the operator's token, or the operator's name. */
export type RequeuedBy = Omit<EventData<'operator_requeued'>, 'call_id'>;

/** Puts a dead-lettered call back in the queue, for the operator. */
export async function requeueCall(
  context: Ledger,
  callId: number,
  by: RequeuedBy = {},
): Promise<{ readonly kind: 'requeued' } | RequeueRefusal> {
  const found = await checkRequeue(context, callId, by);
  if (found.kind !== 'possible') return { kind: found.kind };
  // a refund that was started or recorded meanwhile moves the stream
  const { outcome } = await context.lane.append({ ...found.command, call: { op: 'requeue', callId } });
  if (outcome === 'stale') return requeueCall(context, callId, by);
  return { kind: outcome === 'ok' ? 'requeued' : 'not_dead' };
}

/** Whether a call could be put back in the queue at this moment, and what was paid for it. */
export async function checkRequeue(
  context: Ledger,
  callId: number,
  by: RequeuedBy = {},
): Promise<
  (
    | { readonly kind: 'possible'; readonly command: Pick<LaneCommand, 'stream' | 'expect' | 'events'> }
    | RequeueRefusal
  ) & { readonly payment?: PaymentState }
> {
  const call = await findCall(context.db, callId);
  if (call?.status !== 'dead') return { kind: 'not_dead' };
  const { stream } = call;
  const { events } = await readStream(context.pool, stream);
  const expect = events.at(-1)?.version ?? 0;
  const data = { call_id: callId, ...by };
  // no payer paid for it
  if (isTriggeredStream(stream))
    return { kind: 'possible', command: { stream, expect, events: [{ type: 'operator_requeued', data }] } };
  const { payment } = foldQuote(events);
  if (payment?.call?.callId !== callId) return { kind: 'unpaid' };
  const granted = grant(payment, { kind: 'requeue', data });
  if (granted.kind === 'record')
    return { kind: 'possible', command: { stream, expect, events: granted.events }, payment };
  const { kind } = granted.why;
  return { kind: kind === 'refunded' || kind === 'refund_under_way' ? kind : 'unpaid', payment };
}

export interface RequeueBatch extends DeadLetterBatch {
  /** Nothing is changed: the report says what would be. */
  readonly isDryRun: boolean;
  readonly by?: RequeuedBy;
}

export type RequeueReport = BatchReport<RequeueRefusal['kind']>;

/** Puts one batch of the dead letters that are meant back in the queue. */
export async function requeueCalls(context: Ledger, batch: RequeueBatch): Promise<RequeueReport> {
  return changeDeadLetters(context.db, batch, async (callId) => {
    const { kind } = await (batch.isDryRun
      ? checkRequeue(context, callId)
      : requeueCall(context, callId, batch.by));
    return kind === 'requeued' || kind === 'possible' ? { kind: 'done' } : { kind: 'skipped', why: kind };
  });
}
