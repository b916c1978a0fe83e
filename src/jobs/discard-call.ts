import type { EventData, LedgerEvent } from '../domain/events/event.ts';
import { foldQuote } from '../domain/payments/quote-state.ts';
import { findCall } from '../store/calls.ts';
import { readStream } from '../store/streams.ts';
import type { JobsContext } from './context.ts';

export type DiscardResult =
  | { readonly kind: 'discarded' }
  /** It was completed, discarded, or never paid. */
  | { readonly kind: 'not_found' }
  /** A runner has it under a lease: it can still be completed. */
  | { readonly kind: 'with_runner' };

/**
 * Gives a call up, on the operator's word: it leaves the queue for good, and its refund is due, with who decided that and why on
 * record. A call that still waits becomes a dead letter in the same step.
 */
export async function discardCall(
  context: Pick<JobsContext, 'db' | 'lane' | 'pool'>,
  callId: number,
  by: Omit<EventData<'operator_discarded'>, 'call_id'>,
): Promise<DiscardResult> {
  const call = await findCall(context.db, callId);
  if (call?.status !== 'ready' && call?.status !== 'leased' && call?.status !== 'dead')
    return { kind: 'not_found' };
  const dead: LedgerEvent = {
    type: 'dead_lettered',
    data: { call_id: callId, attempt: call.attempt, reason: 'discarded' },
  };
  const quote = foldQuote((await readStream(context.pool, call.stream)).events);
  const { outcome } = await context.lane.append({
    stream: call.stream,
    expect: quote.version,
    events: [
      ...(call.status === 'dead' ? [] : [dead]),
      { type: 'operator_discarded', data: { call_id: callId, ...by } },
    ],
    call: { op: 'discard', callId },
  });
  if (outcome === 'ok') return { kind: 'discarded' };
  if (outcome === 'stale' || (await findCall(context.db, callId))?.status !== 'leased')
    return discardCall(context, callId, by);
  return { kind: 'with_runner' };
}
