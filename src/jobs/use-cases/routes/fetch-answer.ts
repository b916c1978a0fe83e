import { createHash } from 'node:crypto';
import { extendLease } from '../../../calls/store/calls.ts';
import type { RouteLease } from '../../../calls/store/route-calls.ts';
import {
  type AttemptOutcome,
  endAttempt,
  isLastAttempt,
  type LeaseResult,
} from '../../../calls/use-cases/record-attempt.ts';
import { readStream } from '../../../ledger/store/streams.ts';
import { clientLeft } from '../../../payments/rules/deliver-or-refund.ts';
import { failureOf, readWithin, textOf, type UpstreamHead } from '../../peers/upstream.ts';
import { answerHeaders, answerTrailers, storedContentType, writeHead } from '../../rules/route-headers.ts';
import { callHeaders } from './call-headers.ts';
import { isCharged } from '../../../base/config/routes.ts';
import type { AnswerClient, AnswerHead } from './answer-client.ts';
import {
  isAnsweredFirst,
  type RouteOutcome,
  type RoutePorts,
  type RouteRefusal,
  type RouteRequest,
} from './route-request.ts';

/** An answer of a known length up to this is on record before its first byte is sent, so that none is sent in vain. */
const smallBytes = 65_536;
/** Of an answer that is a failure of the upstream: it is passed on whole, or not at all. */
const longestFailureBytes = 1_048_576;
/** How often a client may leave in the middle of an answer that is too long to store, and have it again. */
const repetitions = 2;

// made once: each new one captures a stack trace
const exchangeIsOver = new DOMException('the exchange is over', 'AbortError');

/** One attempt: its lease and what ends it. */
interface Attempt {
  readonly call: RouteLease;
  readonly request: RouteRequest;
  readonly client: AnswerClient;
  /** Aborts the exchange with the upstream. */
  readonly over: AbortController;
}

/** Records that the upstream is asked under this lease; false where another request has the call meanwhile. */
export async function noteDelivered(
  { lane }: RoutePorts,
  { callId, leaseId, stream, attempt }: RouteLease,
): Promise<boolean> {
  const events = [{ type: 'delivered', data: { call_id: callId, attempt } }] as const;
  const { outcome } = await lane.append(
    { stream, events, call: { op: 'check', callId, leaseId } },
    { urgent: true },
  );
  return outcome === 'ok';
}

/** Asks the upstream under a lease whose `delivered` is on record, passes its answer on, and records what became of it. */
export async function fetchAnswer(
  context: RoutePorts,
  request: RouteRequest,
  call: RouteLease,
  client: AnswerClient,
): Promise<RouteOutcome> {
  const attempt: Attempt = { call, request, client, over: new AbortController() };
  const heartbeat = keepLease(context, attempt);
  try {
    return await exchange(context, attempt);
  } finally {
    clearInterval(heartbeat);
    attempt.over.abort(exchangeIsOver);
  }
}

/** Extends the lease while the answer takes. One that is lost ends the exchange: another request has the call. */
function keepLease({ pool, config }: RoutePorts, { call, request, over }: Attempt): NodeJS.Timeout {
  const { leaseSecs } = request.route.config;
  const extend = async (): Promise<void> => {
    const endsAt = await extendLease(pool, call, leaseSecs, config.delivery.maxCallAgeSecs);
    if (!endsAt) over.abort();
  };
  // a database that does not answer now is asked again before the lease ends
  return setInterval(() => void extend().catch(() => {}), (leaseSecs * 1_000) / 3);
}

async function exchange(context: RoutePorts, attempt: Attempt): Promise<RouteOutcome> {
  const { request, over } = attempt;
  const { route, method, target, body } = request;
  const answer = await context.upstreams.of(route.config.upstream).request({
    method,
    target,
    headers: callHeaders(context, route, attempt.call, body),
    body,
    timeoutMs: route.config.timeoutMs,
    signal: over.signal,
  });
  if (answer.kind === 'failed') return fail(context, attempt, answer.reason, answer.error);
  const declared = declaredBytes(answer);
  try {
    if (isFailure(request, answer.status)) return await passFailureOn(context, attempt, answer);
    return declared !== undefined && declared <= smallBytes
      ? await sendWhole(context, attempt, answer)
      : await sendStreamed(context, attempt, answer, declared);
  } finally {
    // what is left of it is not read
    answer.body.destroy();
  }
}

function headOf({ status, headers }: UpstreamHead): AnswerHead {
  return { status, headers: answerHeaders(headers) };
}

/** Of the body; undefined where the upstream does not say it. Answers to HEAD, 204 and 304 have none, whatever they say. */
function declaredBytes({ status, headers }: UpstreamHead): number | undefined {
  if (status === 204 || status === 304) return 0;
  const length = headers['content-length'];
  return typeof length === 'string' && /^\d{1,15}$/.test(length) ? Number(length) : undefined;
}

/** The attempt has failed: the client can repeat its request, and if no repetition succeeds its refund is due. */
async function fail(
  context: RoutePorts,
  { call, client }: Attempt,
  reason: string,
  error: string,
): Promise<RouteRefusal> {
  await end(context, call, { kind: 'retry', reason, error });
  client.cut();
  return { kind: 'refused', code: 'upstream_failed', reason };
}

function end(context: RoutePorts, call: RouteLease, outcome: AttemptOutcome): Promise<LeaseResult> {
  return endAttempt(context, call, outcome, { isFirstNews: false, runner: undefined });
}

/** An answer of 500 and above is the upstream's failure; where the upstream answers first, any that is not charged is none to pay for. */
function isFailure(request: RouteRequest, status: number): boolean {
  return status >= 500 || (isAnsweredFirst(request) && !isCharged(request.route.config, status));
}

/** An answer that is a failure reaches the client in the upstream's own words. */
async function passFailureOn(
  context: RoutePorts,
  attempt: Attempt,
  answer: UpstreamHead,
): Promise<RouteOutcome> {
  const { call, client } = attempt;
  let body: Buffer | undefined;
  try {
    body = await readWithin(answer, longestFailureBytes);
  } catch (error) {
    return fail(context, attempt, failureOf(error), textOf(error));
  }
  await end(context, call, { kind: 'retry', reason: `status_${answer.status}` });
  if (!body) return { kind: 'refused', code: 'upstream_failed', reason: 'too_large' };
  return deliver(client, headOf(answer), body);
}

function deliver(client: AnswerClient, head: AnswerHead, body: Buffer): RouteOutcome {
  client.whole(head, body);
  return { kind: 'answered' };
}

/** A small answer is stored and on record before the client gets any of it. */
async function sendWhole(context: RoutePorts, attempt: Attempt, answer: UpstreamHead): Promise<RouteOutcome> {
  const { call, client } = attempt;
  let body: Buffer;
  try {
    body = Buffer.concat(await Array.fromAsync(answer.body as AsyncIterable<Buffer>));
  } catch (error) {
    return fail(context, attempt, failureOf(error), textOf(error));
  }
  const head = headOf(answer);
  const recorded = await complete(context, call, head, body);
  if (recorded.kind === 'lease_lost')
    return { kind: 'refused', code: 'answer_under_way', reason: 'lease_lost' };
  return deliver(client, head, body);
}

/** @param body undefined where the answer is too long to be stored */
function complete(
  context: RoutePorts,
  call: RouteLease,
  head: AnswerHead,
  body: Buffer | undefined,
  sent?: { readonly sha256: string; readonly bytes: number },
): Promise<LeaseResult> {
  return end(context, call, {
    kind: 'completed',
    contentType: storedContentType(head.headers),
    result: body ?? Buffer.alloc(0),
    resultOmitted: false,
    answer: { status: head.status, head: writeHead(head), passedOn: body ? undefined : sent },
  });
}

/**
 * A longer answer, or one whose length is unknown, is passed on as it comes. Its end is withheld until the completion is on record: of a
 * known length the last piece, else the end of the message. While it is short enough to be stored it is read to its end also for a client that
 * has left.
 */
async function sendStreamed(
  context: RoutePorts,
  attempt: Attempt,
  answer: UpstreamHead,
  declared: number | undefined,
): Promise<RouteOutcome> {
  const { call, client, request } = attempt;
  const { maxResultBytes } = context.config.delivery;
  const { maxResponseBytes } = request.route.config;
  const head = headOf(answer);
  const sum = createHash('sha256');
  let kept: Buffer[] | undefined = [];
  let bytes = 0;
  let withheld: Buffer | undefined;
  let hasLeft = false;
  try {
    for await (const piece of answer.body as AsyncIterable<Buffer>) {
      bytes += piece.length;
      sum.update(piece);
      if (bytes > maxResultBytes) kept = undefined;
      kept?.push(piece);
      hasLeft = !kept && client.left.aborted;
      if (hasLeft || bytes > maxResponseBytes) break;
      if (bytes === declared) withheld = piece;
      else {
        // with the first byte: until then a failure is answered as one
        client.begin(head);
        await client.write(piece);
      }
    }
  } catch (error) {
    return fail(context, attempt, failureOf(error), textOf(error));
  }
  if (hasLeft) return noteLeft(context, attempt);
  if (bytes > maxResponseBytes) return fail(context, attempt, 'upstream_too_large', `${bytes} bytes`);
  const body = kept && Buffer.concat(kept);
  const recorded = await complete(context, call, head, body, { sha256: `0x${sum.digest('hex')}`, bytes });
  if (recorded.kind === 'lease_lost') {
    client.cut();
    return { kind: 'refused', code: 'answer_under_way', reason: 'lease_lost' };
  }
  client.begin(head);
  if (withheld) await client.write(withheld);
  client.end(answerTrailers(answer.trailers));
  return { kind: 'answered' };
}

/** The client has left in the middle of an answer that is too long to store. The third time it counts as delivered. */
async function noteLeft(context: RoutePorts, { call }: Attempt): Promise<RouteOutcome> {
  const { events } = await readStream(context.pool, call.stream);
  const before = events.filter(
    (event) => event.type === 'delivery_failed' && event.data.reason === clientLeft,
  );
  await end(
    context,
    call,
    before.length < repetitions && !isLastAttempt(context, call)
      ? { kind: 'retry', reason: clientLeft }
      : { kind: 'completed', result: Buffer.alloc(0), resultOmitted: true },
  );
  return { kind: 'answered' };
}
