import type { JobsConfig } from '../../../base/config/config.ts';
import { isCharged } from '../../../base/config/routes.ts';
import { within } from '../../../base/runtime/within.ts';
import { orderedUuid } from '../../../base/values/ordered-uuid.ts';
import { sha256 } from '../../../base/values/sha256.ts';
import type { LeaseName } from '../../../calls/store/calls.ts';
import { maxResultBytesOf } from '../../../calls/use-cases/deliver-call.ts';
import { nowSecs } from '../../../ledger/store/ledger.ts';
import type { LedgerEvent } from '../../../ledger/rules/event.ts';
import type { AnsweredFacts } from '../../../payments/rules/payment-progress.ts';
import { settleMarginSecs } from '../../../payments/rules/payment-window.ts';
import { ofPayment, paymentFromData } from '../../../payments/rules/payment.ts';
import { settlementState } from '../../../payments/rules/settlement.ts';
import { findUnsettled } from '../../../payments/store/unsettled.ts';
import { recordDecision, type StartedPayment } from '../../../payments/use-cases/record-settlement.ts';
import {
  failureOf,
  readWithin,
  textOf,
  type UpstreamFailure,
  type UpstreamHead,
  type UpstreamRequest,
} from '../../peers/upstream.ts';
import type { Hex } from '../../../base/values/primitives.ts';
import { answerHeaders, type Header, type HeaderFields, writeHead } from '../../rules/route-headers.ts';
import { type UnusablePrice, usedAtoms } from '../../rules/used-price.ts';
import type { Job } from '../catalog.ts';
import type { BoundRequest, RouteOfRequest } from '../job-request.ts';
import { callHeaders, paidCall } from './call-headers.ts';
import { type KeptBody, readKept, storeAnswer, sumOf } from './kept-answer.ts';
import type { AnswerClient, AnswerHead } from './answer-client.ts';
import {
  attemptSecs,
  graceSecs,
  type RoutePorts,
  type Unanswered,
  type WholeAnswer,
} from './route-request.ts';

export interface AskPorts extends RoutePorts {
  readonly settings: JobsConfig;
}

/** A payment that nothing settles while its upstream is asked: by the process that appended its last attempt. The version is the fencing token. */
export interface Asking {
  readonly started: StartedPayment & { readonly callId: number };
  readonly attempt: number;
  /** Unix seconds. */
  readonly endsAt: number;
  /** Who was permitted to ask; undefined where anyone is. */
  readonly caller: string | undefined;
  /** The price of its quote. */
  readonly quotedWei: bigint;
}

/** What an answer has used, where its payment is of at most the signed amount. */
interface Metered {
  /** The header that says it, or the trailer. */
  readonly name: string | undefined;
  readonly atomsOf: (values: readonly string[]) => bigint | UnusablePrice;
}

export type Asked =
  /** The answer is stored: its payment is to be settled. */
  | {
      readonly kind: 'answered';
      readonly started: StartedPayment & { readonly callId: number };
      /** Undefined where it is too long for memory. */
      readonly answer: WholeAnswer | undefined;
      /** Its client has it already. */
      readonly isPassedOn: boolean;
    }
  /** The payment is on record as failed, and watched. `answer`: what the upstream said all the same. */
  | { readonly kind: 'not_charged'; readonly reason: string; readonly answer: WholeAnswer | undefined }
  /** Another process has recorded something first. */
  | { readonly kind: 'superseded' };

/** Asks the upstream of a payment that is not settled yet, stores its whole answer, and records what became of it. */
export async function askFirst(
  context: AskPorts,
  request: BoundRequest,
  job: Job,
  route: RouteOfRequest,
  { started, attempt, endsAt, caller, quotedWei }: Asking,
): Promise<Asked> {
  const { callId } = started;
  const { payment } = started.state;
  const call = paidCall(request, job, started, { attempt, caller });
  const place = { callId, attempt, leaseId: orderedUuid() };
  const headers = callHeaders(context, route, call, request.body);
  const quoted = { wei: quotedWei, inUsd: job.inUsd };
  const metered: Metered | undefined =
    payment.transferMethod === 'upto'
      ? {
          name: route.config.chargeHeader,
          atomsOf: (values) => usedAtoms(values, quoted, payment.amount),
        }
      : undefined;
  const mostBytes = Math.min(route.config.maxResponseBytes, maxResultBytesOf(context.config));
  const paid = { payer: payment.payer, quoted, isMetered: metered !== undefined, mostBytes };
  const passing = { digest: started.digest, client: undefined as AnswerClient | undefined };
  try {
    const asked = await askWhole(context, request, route, { headers, endsAt, place, metered, paid, passing });
    const isPassedOn = passing.client !== undefined;
    const ended = await recordAnswer(context, started, asked, { attempt, place, isPassedOn });
    if (ended.kind === 'answered' || asked.kind === 'not_charged') {
      passing.client?.end([]);
      passing.client = undefined;
    }
    return ended;
  } finally {
    // whatever was not ended was not whole, or is not on record
    passing.client?.cut();
  }
}

/** Stores and records what became of an attempt. */
async function recordAnswer(
  context: AskPorts,
  started: Asking['started'],
  asked: Whole,
  {
    attempt,
    place,
    isPassedOn,
  }: {
    readonly attempt: number;
    readonly place: LeaseName & { readonly attempt: number };
    readonly isPassedOn: boolean;
  },
): Promise<Asked> {
  const { state } = started;
  if (asked.kind === 'failed') return refuse(context, started, asked.reason, undefined);
  if (asked.kind === 'not_charged') return refuse(context, started, asked.reason, asked.answer);
  const { answer, kept, used } = asked;
  const head = writeHead(answer);
  const sum = sumOf(kept);
  const facts: AnsweredFacts = {
    attempt,
    http_status: answer.status,
    head_sha256: sha256(head),
    result_sha256: sum.sha256,
    result_bytes: sum.bytes,
    ...(used === undefined ? {} : { used: String(used) }),
  };
  await storeAnswer(context, place, answer, head, kept);
  const recorded = await recordDecision(context, started, { kind: 'answered', facts });
  if (recorded.kind !== 'recorded') return { kind: 'superseded' };
  const answered = { ...state, status: 'settling', answered: facts } as const;
  const next = { ...started, version: started.version + 1, state: answered };
  const whole = kept.kind === 'in_memory' ? { ...answer, body: kept.body } : undefined;
  return { kind: 'answered', started: next, answer: whole, isPassedOn };
}

async function refuse(
  context: AskPorts,
  started: StartedPayment,
  reason: string,
  answer: WholeAnswer | undefined,
): Promise<Asked> {
  const recorded = await recordDecision(context, started, { kind: 'not_charged', reason });
  return recorded.kind === 'recorded' ? { kind: 'not_charged', reason, answer } : { kind: 'superseded' };
}

type Whole =
  | {
      readonly kind: 'charged';
      readonly answer: AnswerHead;
      readonly kept: KeptBody;
      /** The atoms that it has used; undefined where the payment is of an exact amount. */
      readonly used: bigint | undefined;
    }
  /** `answer`: undefined where its client has it. */
  | { readonly kind: 'not_charged'; readonly reason: string; readonly answer: WholeAnswer | undefined }
  | { readonly kind: 'failed'; readonly reason: UpstreamFailure | UnusablePrice };

interface Exchange {
  readonly headers: readonly Header[];
  /** Unix seconds. */
  readonly endsAt: number;
  /** Of its answer, if that is charged. */
  readonly place: LeaseName;
  /** Undefined where the payment is of an exact amount. */
  readonly metered: Metered | undefined;
  readonly paid: NonNullable<UpstreamRequest['paid']>;
  /** Who gets an answer while it comes: known once it has begun. */
  readonly passing: { readonly digest: Hex; client: AnswerClient | undefined };
}

/** The whole answer, within the time limit of the attempt and the length that can be stored. */
async function askWhole(
  context: AskPorts,
  { method, path: target, body }: BoundRequest,
  { config, passOn }: RouteOfRequest,
  { headers, endsAt, place, metered, paid, passing }: Exchange,
): Promise<Whole> {
  const leftMs = Math.max(0, (endsAt - graceSecs - nowSecs(context)) * 1_000);
  const signal = AbortSignal.timeout(leftMs);
  const { timeoutMs, upstream } = config;
  const answer = await context.upstreams
    .of(upstream)
    .request({ method, target, headers, body, timeoutMs, signal, paid });
  if (answer.kind === 'failed') {
    context.log.warn({ reason: answer.reason, error: answer.error }, 'an upstream gave no answer');
    return { kind: 'failed', reason: answer.reason === 'aborted' ? 'upstream_timeout' : answer.reason };
  }
  const { status } = answer;
  const head = { status, headers: answerHeaders(answer.headers) };
  try {
    const isFree = !isCharged(config, status);
    const isPricedLast = metered !== undefined && isTrailing(answer.headers, metered.name);
    const early = isFree
      ? 0n
      : isPricedLast
        ? undefined
        : metered?.atomsOf(valuesOf(answer.headers, metered.name));
    if (typeof early === 'string') return unpriced(context, early);
    if (early === 0n) {
      const whole = await readWithin(answer, context.config.delivery.maxResultBytes);
      const reason = isFree ? `status_${status}` : 'nothing_used';
      if (whole) return { kind: 'not_charged', reason, answer: { ...head, body: whole } };
      return { kind: 'failed', reason: 'upstream_too_large' };
    }
    if (isPricedLast) passing.client = passOn?.(passing.digest, head);
    const source = passing.client ? passedOn(answer, passing.client, timeoutMs / 4) : answer.body;
    const kept = await readKept(context, place, source, config.maxResponseBytes);
    switch (kept.kind) {
      case 'too_large':
        return { kind: 'failed', reason: 'upstream_too_large' };
      case 'store_unavailable':
        return { kind: 'failed', reason: 'result_store_unavailable' };
      default: {
        const used = isPricedLast ? metered.atomsOf(valuesOf(answer.trailers, metered.name)) : early;
        if (typeof used === 'string') return unpriced(context, used);
        if (used === 0n) return { kind: 'not_charged', reason: 'nothing_used', answer: undefined };
        return { kind: 'charged', answer: head, kept, used };
      }
    }
  } catch (error) {
    context.log.warn({ error: textOf(error) }, 'an upstream gave no complete answer');
    return { kind: 'failed', reason: signal.aborted ? 'upstream_timeout' : failureOf(error) };
  } finally {
    answer.body.destroy();
  }
}

/**
 * Passes an answer on while it is read. A client that has left does not end it: what was used is to be known. One that reads so slowly that it
 * would use up the time of the attempt, after which nothing is charged, is cut: the same payment gets the whole answer.
 * @param patienceMs how long the client may be waited for in all
 */
async function* passedOn(
  { body }: UpstreamHead,
  client: AnswerClient,
  patienceMs: number,
): AsyncGenerator<Buffer, void> {
  let leftMs = patienceMs;
  for await (const piece of body as AsyncIterable<Buffer>) {
    yield piece;
    if (leftMs <= 0) continue;
    const beganMs = performance.now();
    await within(leftMs, client.write(piece));
    leftMs -= performance.now() - beganMs;
    if (leftMs <= 0) client.cut();
  }
}

function unpriced({ log }: AskPorts, reason: UnusablePrice): Whole {
  log.error({ reason }, 'the answer of an upstream does not say what it costs: it is not given');
  return { kind: 'failed', reason };
}

/** Whether an answer says that this header follows its body. */
function isTrailing(headers: HeaderFields, name: string | undefined): boolean {
  const announced = valuesOf(headers, 'trailer').flatMap((value) => value.split(','));
  return announced.some((one) => one.trim().toLowerCase() === name);
}

function valuesOf(headers: HeaderFields, name: string | undefined): string[] {
  const value = name === undefined ? undefined : headers[name];
  return value === undefined ? [] : [value].flat();
}

/**
 * Begins another attempt for a payment whose process is gone. Where the request may have had an effect, and its route does not say that it
 * can be repeated, or where the authorization ends too early, the payment is recorded as failed.
 */
export async function askAgain(
  context: AskPorts,
  { method }: BoundRequest,
  { config }: RouteOfRequest,
  { digest, state, known }: Unanswered,
): Promise<Asking | { readonly kind: 'not_charged' } | { readonly kind: 'superseded' }> {
  const [held] = await findUnsettled(context.db, digest);
  if (!held || !known.upstream) return { kind: 'superseded' };
  const payment = paymentFromData(known.payment);
  const before = { callId: held.call_id, attempt: held.attempt };
  const started = {
    digest,
    version: state.version,
    callId: held.call_id,
    state: settlementState(known, before),
  };
  const endsAt = nowSecs(context) + attemptSecs(config);
  const isRepeatable = method === 'GET' || method === 'HEAD' || config.retryLost;
  const margin = settleMarginSecs(context.settings.facilitatorSettleTimeoutMs);
  if (!isRepeatable || BigInt(endsAt + margin) > payment.validBefore) {
    const recorded = await recordDecision(context, started, { kind: 'not_charged', reason: 'upstream_lost' });
    return { kind: recorded.kind === 'recorded' ? 'not_charged' : 'superseded' };
  }
  const attempt = known.upstream.attempt + 1;
  const data = { ...ofPayment(payment), attempt, ends_at: endsAt };
  const events: readonly LedgerEvent[] = [{ type: 'upstream_repeated', data }];
  const { outcome } = await context.lane.append(
    { stream: digest, expect: state.version, events },
    { urgent: true },
  );
  if (outcome !== 'ok') return { kind: 'superseded' };
  return {
    started: { ...started, version: state.version + 1 },
    attempt,
    endsAt,
    caller: held.caller ?? undefined,
    quotedWei: BigInt(state.quote?.price_wei ?? 0),
  };
}
