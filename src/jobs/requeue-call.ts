import { foldQuote } from '../domain/payments/quote-state.ts';
import { findCall } from '../store/calls.ts';
import { readStream } from '../store/streams.ts';
import type { JobsContext } from './context.ts';

export type RequeueResult =
  | { readonly kind: 'requeued' }
  | { readonly kind: 'not_dead' }
  /** Its payment was refunded. */
  | { readonly kind: 'refunded' }
  /** The settlement of its payment was taken back, and it is not settled again. */
  | { readonly kind: 'unpaid' };

/** Puts a dead-lettered call back in the queue, for the operator. */
export async function requeueCall(
  context: Pick<JobsContext, 'db' | 'lane' | 'pool'>,
  callId: number,
  tokenId?: number,
): Promise<RequeueResult> {
  const call = await findCall(context.db, callId);
  if (call?.status !== 'dead') return { kind: 'not_dead' };
  const quote = foldQuote((await readStream(context.pool, call.stream)).events);
  const payment = quote.payments.find((paid) => paid.call?.callId === callId);
  if (payment?.refunded) return { kind: 'refunded' };
  if (payment?.status !== 'settled') return { kind: 'unpaid' };
  const { outcome } = await context.lane.append({
    stream: call.stream,
    // a refund recorded meanwhile moves the stream
    expect: quote.version,
    events: [
      {
        type: 'operator_requeued',
        data: { call_id: callId, ...(tokenId === undefined ? {} : { token_id: tokenId }) },
      },
    ],
    call: { op: 'requeue', callId },
  });
  if (outcome === 'stale') return requeueCall(context, callId, tokenId);
  return { kind: outcome === 'ok' ? 'requeued' : 'not_dead' };
}
