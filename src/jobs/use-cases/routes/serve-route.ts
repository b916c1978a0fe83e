import { grownWithin } from '../../../calls/use-cases/stream-watch.ts';
import { leaseRouteCall, type RouteLease } from '../../../calls/store/route-calls.ts';
import type { RecordedEvent } from '../../../ledger/rules/event.ts';
import { readStream } from '../../../ledger/store/streams.ts';
import { paidPayment, foldQuote } from '../../../payments/rules/quote-state.ts';
import { fetchAnswer, noteDelivered } from './fetch-answer.ts';
import { findKept, sendKept } from './kept-answer.ts';
import type { AnswerClient } from './answer-client.ts';
import { type RouteOutcome, type RoutePorts, type RouteRequest } from './route-request.ts';

/** How long a request waits for another one of the same payment. */
const longestWaitMs = 30_000;
const lookAgainMs = 1_000;

/**
 * Gives a settled payment's client its answer: from the upstream, or the one that is stored. One request at a time has the call under a
 * lease, and others of the same payment wait for it. Each attempt is on record. Never throws for anything that client or upstream does.
 * @param held the first lease of the call, which this request has; its `delivered` is on record
 */
export async function serveRoute(
  context: RoutePorts,
  request: RouteRequest,
  client: AnswerClient,
  held?: RouteLease,
): Promise<RouteOutcome> {
  if (held) return fetchAnswer(context, request, held, client);
  const { pool, config } = context;
  const { digest, callId, route } = request;
  const deadline = AbortSignal.any([client.left, AbortSignal.timeout(longestWaitMs)]);
  const lease = { leaseSecs: route.config.leaseSecs, maxAgeSecs: config.delivery.maxCallAgeSecs };
  for (;;) {
    const call = await leaseRouteCall(pool, callId, lease);
    if (call) {
      if (await noteDelivered(context, call)) return fetchAnswer(context, request, call, client);
      return { kind: 'refused', code: 'answer_under_way', reason: 'lease_lost' };
    }
    const { events, nowSecs } = await readStream(pool, digest);
    const ended = await answerOnRecord(context, request, events, nowSecs, client);
    if (ended) return ended;
    if (deadline.aborted || context.stopping()) return { kind: 'refused', code: 'answer_under_way' };
    const version = events.at(-1)?.version ?? 0;
    // an expired lease appends nothing
    await grownWithin(context, { stream: digest, version }, deadline, lookAgainMs);
  }
}

/** What the ledger says of a call that has ended; undefined while it is open. */
async function answerOnRecord(
  context: RoutePorts,
  { route, callId, isReplayed }: RouteRequest,
  events: readonly RecordedEvent[],
  nowSecs: number,
  client: AnswerClient,
): Promise<RouteOutcome | undefined> {
  const paid = paidPayment(foldQuote(events));
  // taken back: its outcome is open again
  if (!paid) return { kind: 'refused', code: 'answer_under_way', reason: 'payment_not_settled' };
  if (paid.isRefunded || paid.refunding || paid.call?.status === 'dead_lettered')
    return { kind: 'refused', code: 'refund_due' };
  const completed = events.findLast((event) => event.type === 'completed');
  if (paid.call?.status !== 'completed' || !completed) return undefined;
  const { result_sha256: sum } = completed.data;
  const notKept: RouteOutcome = {
    kind: 'refused',
    code: 'answer_not_kept',
    ...(sum === undefined ? {} : { sha256: sum }),
  };
  // the first delivery is never too late
  const ageSecs = nowSecs - Date.parse(completed.at) / 1_000;
  if (isReplayed && ageSecs > route.config.answerHours * 3_600) return notKept;
  const kept = await findKept(context, callId, completed);
  if (!kept) return notKept;
  return sendKept(context, { ...kept, head: { ...kept.head, isReplayed } }, client);
}
