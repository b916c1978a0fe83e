import { pause } from '../../../base/runtime/pause.ts';
import { sha256 } from '../../../base/values/sha256.ts';
import { readResult } from '../../../calls/store/calls.ts';
import { leaseRouteCall } from '../../../calls/store/route-calls.ts';
import type { EventOf, RecordedEvent } from '../../../ledger/rules/event.ts';
import { readStream } from '../../../ledger/store/streams.ts';
import { paidPayment, foldQuote } from '../../../payments/rules/quote-state.ts';
import { readHead } from '../../rules/route-headers.ts';
import { fetchAnswer } from './fetch-answer.ts';
import {
  type AnswerClient,
  type AnswerHead,
  type RouteOutcome,
  type RoutePorts,
  type RouteRequest,
} from './route-request.ts';

/** How long a request waits for another one of the same payment. */
const longestWaitMs = 30_000;
const lookAgainMs = 1_000;

/**
 * Gives a settled payment's client its answer: from the upstream, or the one that is stored. One request at a time has the call under a
 * lease, and others of the same payment wait for it. Each attempt is on record. Never throws for anything that client or upstream does.
 */
export async function serveRoute(
  context: RoutePorts,
  request: RouteRequest,
  client: AnswerClient,
): Promise<RouteOutcome> {
  const { pool, config, settings } = context;
  const { digest, callId } = request;
  const deadline = AbortSignal.any([client.left, AbortSignal.timeout(longestWaitMs)]);
  const lease = { leaseSecs: settings.routes?.leaseSecs ?? 0, maxAgeSecs: config.delivery.maxCallAgeSecs };
  for (;;) {
    const call = await leaseRouteCall(pool, callId, lease);
    if (call) return fetchAnswer(context, request, call, client);
    const { events, nowSecs } = await readStream(pool, digest);
    const ended = await answerOnRecord(context, request, events, nowSecs, client);
    if (ended) return ended;
    if (deadline.aborted || context.stopping()) return { kind: 'refused', code: 'answer_under_way' };
    const version = events.at(-1)?.version ?? 0;
    // an expired lease appends nothing
    await Promise.race([context.streams.grown({ stream: digest, version }, deadline), pause(lookAgainMs)]);
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
  client.whole({ ...kept.head, isReplayed }, kept.body);
  return { kind: 'answered' };
}

/** The stored answer, if it is the one that the ledger has. */
async function findKept(
  { db, log }: RoutePorts,
  callId: number,
  { data }: EventOf<'completed'>,
): Promise<{ readonly head: AnswerHead; readonly body: Buffer } | undefined> {
  const result = await readResult(db, callId, data.attempt);
  if (!result || result.head === undefined) return undefined;
  const isRecorded = sha256(result.body) === data.result_sha256 && sha256(result.head) === data.head_sha256;
  if (isRecorded) return { head: readHead(result.head), body: result.body };
  log.error({ call_id: callId }, 'a stored answer differs from the one in the ledger: it is not repeated');
  return undefined;
}
