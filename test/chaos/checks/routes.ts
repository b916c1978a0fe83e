import { sha256 } from '../../../src/base/values/sha256.ts';
import { readResult } from '../../../src/calls/store/calls.ts';
import type { EventOf, RecordedEvent } from '../../../src/ledger/rules/event.ts';
import type { LedgerDatabase } from '../../../src/ledger/store/database.ts';
import type { Presentation, Records, RouteCall } from '../records.ts';
import { longestKeptBytes } from '../route-config.ts';
import type { RunnerRun } from '../runner-slot.ts';
import { isOfRoute, jobs } from '../schedule.ts';
import { atomsOf, usedOf } from './metered.ts';
import { isExcusedByWord } from './money.ts';
import { isOwnRequest, type RecordedPayment } from './payments.ts';
import type { Landed } from './transfers.ts';
import type { Violation } from './violation.ts';

interface Facts {
  readonly records: Records;
  readonly transfers: readonly Landed[];
  readonly payments: ReadonlyMap<string, RecordedPayment>;
  readonly events: readonly RecordedEvent[];
  readonly quietSince: number;
  readonly believesLies: boolean;
  /** Leases and attempts end while they are under way. */
  readonly isClockMoved: boolean;
}

/** No lease or attempt is shorter than this, however long the database is away. */
const shortestLeaseMs = 2_000;

/** What clients of routes got, what their upstream was asked, and what was charged. */
export function* routeViolations(facts: Facts): Generator<Violation> {
  const streams = Map.groupBy(facts.events, ({ stream }) => stream);
  const asked = Map.groupBy(facts.records.routeCalls, ({ stream }) => stream);
  const presentations = facts.records.presentations.filter(isOfRoute);
  yield* differences(presentations);
  for (const presentation of presentations) {
    const payment = facts.payments.get(presentation.signed.key);
    const stream = payment?.stream ?? '';
    yield* answerViolations(facts, presentation, payment, asked.get(stream) ?? []);
    if (isMetered(presentation))
      yield* meteredAnswerViolations(presentation, payment, asked.get(stream) ?? [], facts);
    yield* closingViolations(presentation, streams.get(stream) ?? []);
  }
  for (const [stream, calls] of asked) {
    yield* askingViolations(facts, stream, calls, streams.get(stream) ?? []);
    yield* chargeViolations(facts, stream, calls, streams.get(stream) ?? []);
  }
}

/** All that send one payment get one good answer. */
function* differences(presentations: readonly Presentation[]): Generator<Violation> {
  for (const [key, ofPayment] of Map.groupBy(presentations, ({ signed }) => signed.key)) {
    const good = ofPayment.flatMap(({ attempts }) =>
      attempts.flatMap(({ status = 0, answer }) => (status < 400 && answer?.sha256) || []),
    );
    if (new Set(good).size > 1) yield { kind: 'wrong_answer', words: `${key} got several answers` };
  }
}

/** What is charged, or good, goes to the client that has paid for it; it is what the upstream answered to that payment. */
function* answerViolations(
  { records, transfers, believesLies }: Facts,
  presentation: Presentation,
  payment: RecordedPayment | undefined,
  calls: readonly RouteCall[],
): Generator<Violation> {
  const { signed, scenario, attempts } = presentation;
  const isExcused =
    payment !== undefined &&
    (payment.isReorgedOut ||
      (believesLies && payment.settled.length > 0 && isExcusedByWord(payment, records)));
  const hasLanded = transfers.some(({ key }) => key === signed.key);
  for (const { status = 0, answer } of attempts) {
    if (!answer) continue;
    const words = `${scenario}: ${signed.key} got an answer with ${status}`;
    const isPriced = status < 400 && !isMetered(presentation);
    if ((isPriced || answer.isCharged) && !hasLanded && !isExcused)
      yield { kind: 'answer_not_paid', words: `${words}, and did not pay` };
    if (isPriced && !answer.isCharged) yield { kind: 'answer_not_paid', words: `${words} free of charge` };
    if (answer.sha256 !== undefined && !isOwnRequest(payment, presentation))
      yield { kind: 'accepted_for_another_request', words };
    if (answer.sha256 === undefined) continue;
    const isOfUpstream = calls.some(
      ({ answer: given }) => given?.status === status && given.sha256 === answer.sha256,
    );
    if (!isOfUpstream) yield { kind: 'wrong_answer', words: `${words} that its upstream did not give` };
  }
}

function isMetered({ path }: Presentation): boolean {
  return path.startsWith(`${jobs.metered.path}/`);
}

/**
 * Where an answer says what it has used, it says so to its client as well, unless that comes with its end: then it is on record before its client
 * has all of it, whether or not the payment lands. One that costs nothing is free, and one without a usable price is not given.
 */
function* meteredAnswerViolations(
  { signed, scenario, attempts }: Presentation,
  payment: RecordedPayment | undefined,
  calls: readonly RouteCall[],
  { events }: Pick<Facts, 'events'>,
): Generator<Violation> {
  for (const { status = 0, answer } of attempts) {
    if (!answer || answer.sha256 === undefined || status >= 400) continue;
    const given = calls.find((call) => call.answer?.sha256 === answer.sha256)?.answer;
    if (!given) continue;
    const used = usedOf(given, atomsOf(signed));
    const words = `${scenario}: ${signed.key} got an answer that says it costs ${given.prices.join(' and ') || 'nothing at all'}`;
    const isOnRecord = events.some(
      (event) =>
        event.type === 'upstream_answered' &&
        event.stream === payment?.stream &&
        event.data.result_sha256 === answer.sha256,
    );
    const isWrong =
      used === undefined ||
      (used === 0n ? answer.isCharged : !isOnRecord || !(answer.isCharged || given.isPricedLast));
    if (isWrong)
      yield {
        kind: 'answer_not_paid',
        words: `${words}, ${answer.isCharged ? '' : 'not '}charged, ${isOnRecord ? '' : 'not '}on record`,
      };
  }
}

const dueTypes: ReadonlySet<string> = new Set(['dead_lettered', 'refund_started', 'refunded']);

/** If the gateway answers that a client gets nothing more, the ledger has the reason. */
function* closingViolations(
  { attempts, signed, scenario }: Presentation,
  events: readonly RecordedEvent[],
): Generator<Violation> {
  const isDue = events.some(({ type }) => dueTypes.has(type));
  const completed = events.findLast(isCompleted);
  for (const { code } of attempts) {
    const words = `${scenario}: ${signed.key} was answered ${code}`;
    if (code === 'refund_due' && !isDue)
      yield { kind: 'answer_lost', words: `${words}, and no refund is due` };
    if (code === 'answer_not_kept' && (!completed || isKept(completed)))
      yield { kind: 'answer_lost', words: `${words}, and it must be stored` };
  }
}

/** The upstream is asked once for each attempt on record, under one key, for what was paid, and never twice at a time. */
function* askingViolations(
  { records, payments, quietSince, isClockMoved }: Facts,
  stream: string,
  calls: readonly RouteCall[],
  events: readonly RecordedEvent[],
): Generator<Violation> {
  const attempts = events.filter(
    (event) =>
      event.type === 'delivered' ||
      event.type === 'upstream_repeated' ||
      (event.type === 'settlement_started' && event.data.upstream !== undefined),
  );
  const words = `the upstream was asked ${calls.length} times for ${stream}`;
  if (calls.length > attempts.length)
    yield { kind: 'asked_twice', words: `${words}, with ${attempts.length} attempts on record` };
  if (new Set(calls.map(({ idempotencyKey }) => idempotencyKey)).size > 1)
    yield { kind: 'asked_twice', words: `${words}, under several keys` };
  for (const [index, { askedAt }] of calls.entries()) {
    if (isClockMoved || askedAt > quietSince) continue;
    const isUnderWay = ({ askedAt: atMs, endedAt = Infinity }: RouteCall) =>
      endedAt > askedAt && askedAt - atMs < shortestLeaseMs;
    if (calls.slice(0, index).some(isUnderWay))
      yield { kind: 'asked_twice', words: `${words}, twice at a time` };
  }
  const paidFor = (call: RouteCall) =>
    records.presentations.some(
      ({ method, path, body, signed }) =>
        payments.get(signed.key)?.stream === stream &&
        method === call.method &&
        path === call.path &&
        sha256(body) === call.bodySha256,
    );
  if (!calls.every(paidFor)) yield { kind: 'wrong_work', words: `${words}, for something else` };
}

/**
 * A payment whose upstream answers first is settled by no process before the answer is on record, which is the upstream's and one to charge. A
 * third party may have landed it.
 */
function* chargeViolations(
  { records, transfers }: Facts,
  stream: string,
  calls: readonly RouteCall[],
  events: readonly RecordedEvent[],
): Generator<Violation> {
  const started = events.find((event) => event.type === 'settlement_started');
  if (started?.data.upstream === undefined) return;
  const { nonce } = started.data.payment;
  const answered = events.find((event) => event.type === 'upstream_answered');
  // one that a third party had landed, and a reorg removed, is settled for its call
  const isTakenBack = events.some(
    ({ type }) => type === 'settlement_reorged' || type === 'settlement_disproved',
  );
  if (!answered && !isTakenBack && records.settles.has(nonce)) {
    const landed = transfers.some((one) => one.nonce === nonce) ? 'landed' : 'not landed';
    yield { kind: 'settled_unanswered', words: `${stream} was settled without an answer, and has ${landed}` };
  }
  if (!answered) return;
  const { http_status: status, result_sha256: sum } = answered.data;
  const isGiven = calls.some(({ answer }) => answer?.status === status && answer.sha256 === sum);
  if (status >= 400 || !isGiven)
    yield { kind: 'settled_unanswered', words: `${stream} was settled for an answer with ${status}` };
}

function isCompleted(event: RecordedEvent): event is EventOf<'completed'> {
  return event.type === 'completed';
}

/** Whether an answer has to be stored. One whose client left too often is not stored. */
function isKept({ data }: EventOf<'completed'>): boolean {
  return data.http_status !== undefined && (data.result_bytes ?? 0) <= longestKeptBytes;
}

/** Calls of routes that are completed with an answer which is not stored, nor was it too long for that. */
export async function* lostAnswers(
  db: LedgerDatabase,
  events: readonly RecordedEvent[],
): AsyncGenerator<Violation> {
  for (const { stream, data } of events.filter(isCompleted)) {
    const { call_id: id, attempt, http_status: status, result_sha256: sum } = data;
    if (status === undefined || !isKept({ data } as EventOf<'completed'>)) continue;
    const kept = await readResult(db, id, attempt);
    if (!kept || sha256(kept.body) !== sum)
      yield { kind: 'answer_lost', words: `${stream}: the answer of call ${id} is not stored` };
  }
}

/** What the upstream got for payments whose call was released, as if a runner had got it: the rest is asked before it is paid. */
export function routeRuns(
  { routeCalls }: Pick<Records, 'routeCalls'>,
  payments: ReadonlyMap<string, RecordedPayment>,
  events: readonly RecordedEvent[],
): RunnerRun[] {
  const first = new Set(
    events.flatMap((event) =>
      event.type === 'settlement_started' && event.data.upstream ? event.stream : [],
    ),
  );
  const released = new Set([...payments.values()].flatMap(({ everEnqueued }) => everEnqueued));
  return routeCalls
    .filter(({ stream, callId }) => !first.has(stream) || released.has(callId))
    .map(({ stream, ...call }) => ({ ...call, quoteDigest: stream, process: 0 }));
}
