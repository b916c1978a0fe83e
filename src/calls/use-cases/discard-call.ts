import type { EventData, LedgerEvent } from '../../ledger/rules/event.ts';
import { isTriggeredStream } from '../../base/values/triggers/trigger.ts';
import { findCall } from '../store/calls.ts';
import { readStream } from '../../ledger/store/streams.ts';
import type { Ledger } from '../../ledger/store/ledger.ts';

/** Who gives a call up, and why. */
export type DiscardRecord = Omit<EventData<'operator_discarded'>, 'call_id'>;

export type DiscardResult =
  /** `isPaid`: its refund is due. */
  | { readonly kind: 'discarded'; readonly isPaid: boolean }
  /** It was completed, discarded, or never paid. */
  | { readonly kind: 'not_found' }
  /** A runner has it under a lease: it can still be completed. */
  | { readonly kind: 'with_runner' };

/**
 * Gives a call up, on the operator's word: it leaves the queue for good, and its refund is due where it was paid, with who decided that and why on
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
  if (outcome === 'ok') return { kind: 'discarded', isPaid: !isTriggeredStream(call.stream) };
  if (outcome === 'stale' || (await findCall(context.db, callId))?.status !== 'leased')
    return discardCall(context, callId, by);
  return { kind: 'with_runner' };
}

/** Gives a dead letter up. One that was requeued meanwhile stays in the queue. */
export async function discardDeadLetter(
  context: Ledger,
  callId: number,
  by: DiscardRecord,
): Promise<{ readonly kind: 'discarded' } | { readonly kind: 'not_dead' }> {
  const call = await readCall(context, callId);
  if (call?.status !== 'dead') return { kind: 'not_dead' };
  const outcome = await append(context, call, by, []);
  return outcome === 'ok' ? { kind: 'discarded' } : discardDeadLetter(context, callId, by);
}

interface ReadCall {
  readonly callId: number;
  readonly stream: string;
  readonly version: number;
  readonly status: string;
  readonly attempt: number;
}

/** Its state is read behind its stream: whatever makes or ends a dead letter moves the version. */
async function readCall({ db, pool }: Ledger, callId: number): Promise<ReadCall | undefined> {
  const named = await findCall(db, callId);
  if (!named) return undefined;
  const { events } = await readStream(pool, named.stream);
  const call = await findCall(db, callId);
  return call && { ...call, callId, version: events.at(-1)?.version ?? 0 };
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
