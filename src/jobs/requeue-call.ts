import { foldQuote } from '../domain/payments/quote-state.ts';
import { findCall } from '../store/calls.ts';
import { readStream } from '../store/streams.ts';
import type { JobsContext } from './context.ts';

/** `refunded`: nobody pays for it any more. */
export type Requeued = 'done' | 'not_dead' | 'refunded';

/** Puts a dead-lettered call back in the queue, by the operator's word. */
export async function requeueCall(
  context: Pick<JobsContext, 'db' | 'lane' | 'pool'>,
  callId: number,
  tokenId?: number,
): Promise<Requeued> {
  const call = await findCall(context.db, callId);
  if (call?.status !== 'dead') return 'not_dead';
  const story = foldQuote((await readStream(context.pool, call.stream)).events);
  const payment = story.payments.find((paid) => paid.call?.callId === callId);
  if (payment?.refunded) return 'refunded';
  const { outcome } = await context.lane.append({
    stream: call.stream,
    // a refund that is recorded meanwhile moves the stream
    expect: story.version,
    events: [
      {
        type: 'operator_requeued',
        data: { call_id: callId, ...(tokenId === undefined ? {} : { token_id: tokenId }) },
      },
    ],
    call: { op: 'requeue', callId },
  });
  if (outcome === 'stale') return requeueCall(context, callId, tokenId);
  return outcome === 'ok' ? 'done' : 'not_dead';
}
