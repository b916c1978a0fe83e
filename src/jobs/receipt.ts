import type { RecordedEvent } from '../domain/events/event.ts';
import { paymentSummary } from '../domain/payments/payment.ts';
import type { Hex } from '../domain/values/primitives.ts';
import type { CallState } from '../domain/payments/payment-progress.ts';
import { foldQuote, isPaid, jobOf, paidPayment, receiptState } from '../domain/payments/quote-state.ts';
import { readResult } from '../store/calls.ts';
import { readStream } from '../store/streams.ts';
import type { JobsContext } from './context.ts';

/** A quote's receipt; `withResult` adds the runner's result. Undefined for an unknown digest. */
export async function readReceipt(
  context: Pick<JobsContext, 'pool' | 'db'>,
  digest: Hex,
  withResult: boolean,
) {
  const { events, nowSecs } = await readStream(context.pool, digest);
  const state = foldQuote(events);
  if (events.length === 0 || (!state.quote && state.payments.length === 0)) return undefined;
  const job = jobOf(state);
  const paid = paidPayment(state);
  return {
    quote_digest: digest,
    state: receiptState(state, nowSecs),
    paid: isPaid(state),
    ...(job ? { service_id: job.serviceId, job_index: job.jobIndex } : {}),
    ...(state.quote ? { quote_expires_at: new Date(state.quote.expires_at * 1_000).toISOString() } : {}),
    ...(paid?.call ? { call_id: paid.call.callId } : {}),
    ...(paid?.settled ? { payment: paymentSummary(paid.payment, paid.settled.transaction) } : {}),
    events: events.map(({ type, at }) => ({ type, at })),
    ...(withResult ? await resultOf(context, paid?.call, events) : {}),
  };
}

/** The result, or that there was one and its life has ended. */
async function resultOf(
  context: Pick<JobsContext, 'db'>,
  call: CallState | undefined,
  events: readonly RecordedEvent[],
) {
  if (call?.status !== 'completed' || call.attempt === undefined) return { result: null };
  const stored = await readResult(context.db, call.callId, call.attempt);
  if (stored)
    return {
      result: { content_type: stored.contentType ?? null, body_base64: stored.body.toString('base64') },
    };
  const hadResult = events.some(({ type, data }) => type === 'completed' && 'result_sha256' in data);
  return { result: null, ...(hadResult ? { result_pruned: true as const } : {}) };
}
