import type { EventData } from '../domain/events/event.ts';
import { foldQuote } from '../domain/payments/quote-state.ts';
import { foldSending, refundStream } from '../domain/payments/refund-sending.ts';
import { isTriggeredStream } from '../domain/triggers/trigger.ts';
import { findCall } from '../store/calls.ts';
import { readStream } from '../store/streams.ts';
import type { JobsContext } from './context.ts';

type Ledger = Pick<JobsContext, 'db' | 'lane' | 'pool'>;

/** Why a call is not put back in the queue. */
export type RequeueRefusal =
  | { readonly kind: 'not_dead' }
  /** Its payment was refunded, or a part of it. */
  | { readonly kind: 'refunded' }
  /** An operator's wallet was asked to send its refund, which is neither recorded nor dropped yet. */
  | { readonly kind: 'refund_under_way' }
  /** The settlement of its payment was taken back, and it is not settled again. */
  | { readonly kind: 'unpaid' };

export type RequeueResult = { readonly kind: 'requeued' } | RequeueRefusal;

/** Who puts it back: the operator's token, or the operator's name. */
export type RequeuedBy = Omit<EventData<'operator_requeued'>, 'call_id'>;

/** Puts a dead-lettered call back in the queue, for the operator. */
export async function requeueCall(
  context: Ledger,
  callId: number,
  by: RequeuedBy = {},
): Promise<RequeueResult> {
  const found = await checkRequeue(context, callId);
  if (found.kind !== 'possible') return found;
  const data = { call_id: callId, ...by };
  const { outcome } = await context.lane.append({
    stream: found.stream,
    // a refund recorded meanwhile moves the stream
    expect: found.version,
    events: [{ type: 'operator_requeued', data }],
    call: { op: 'requeue', callId },
  });
  if (outcome === 'stale') return requeueCall(context, callId, by);
  return { kind: outcome === 'ok' ? 'requeued' : 'not_dead' };
}

/** Whether a call could be put back in the queue at this moment. */
export async function checkRequeue(
  context: Ledger,
  callId: number,
): Promise<
  { readonly kind: 'possible'; readonly stream: string; readonly version: number } | RequeueRefusal
> {
  const call = await findCall(context.db, callId);
  if (call?.status !== 'dead') return { kind: 'not_dead' };
  const { events } = await readStream(context.pool, call.stream);
  // nobody has paid for it
  if (isTriggeredStream(call.stream))
    return { kind: 'possible', stream: call.stream, version: events.at(-1)?.version ?? 0 };
  const quote = foldQuote(events);
  const payment = quote.payment?.call?.callId === callId ? quote.payment : undefined;
  if (payment && payment.refunds.length > 0) return { kind: 'refunded' };
  if (payment?.status !== 'settled') return { kind: 'unpaid' };
  if (await isBeingRefunded(context, call.stream, payment.payment.nonce)) return { kind: 'refund_under_way' };
  return { kind: 'possible', stream: call.stream, version: quote.version };
}

/** What a wallet may have sent moves money although no event of the payment says so yet: its call is not delivered beside it. */
async function isBeingRefunded({ pool }: Ledger, quoteDigest: string, nonce: string): Promise<boolean> {
  const { events } = await readStream(pool, refundStream(quoteDigest, nonce));
  return foldSending(events) !== undefined;
}
