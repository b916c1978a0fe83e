import { randomUUID } from 'node:crypto';
import { brokerName, brokerNames } from '../base/values/broker/names.ts';
import { isCallId, isLeaseId } from '../base/values/broker/lease-messages.ts';
import { type ReportedOutcome, sealResult } from '../base/values/broker/result-message.ts';
import { type CallMetadata, verifyCall } from '../base/values/call-signature.ts';
import { leaseHeader, progressToken } from '../base/values/progress-token.ts';
import { pause } from '../base/runtime/pause.ts';
import type { BrokerConnection, BrokerMessage, BrokerStream } from './broker.ts';
import { factsOf, type ReceivedCall, readCall } from './call.ts';
import { RunnerError } from './errors.ts';
import { requireWhole } from './job.ts';
import { keepLease } from './lease.ts';
import { createLeaseDesk, type LeaseDesk } from './lease-desk.ts';
import type { Outcome } from './outcome.ts';
import type { PollParts } from './poll.ts';
import { createReporterOf, retryWaitMs } from './report.ts';

export interface ConsumeOptions {
  /** The connection to the broker, which the runner's author makes and closes: `await connect({ servers })`. */
  readonly connection: BrokerConnection;
  /** `jetstream(connection)`. */
  readonly jetstream: BrokerStream;
  /** The runner's name in the gateway's configuration. */
  readonly runner: string;
  /** What the gateway's configuration names as this runner's token. */
  readonly token: string;
  /** The gateway's `ledger_name`. Default `tollbook`. */
  readonly name?: string | undefined;
  /** Calls fetched in one request, 1 to 1000. Default 100, and never more than can run. */
  readonly max?: number | undefined;
  /** How long a call is this runner's until it extends it, 5 to 3600. It does so by itself. Default 60. */
  readonly leaseSecs?: number | undefined;
}

type ConsumeParts = Omit<PollParts, 'services'>;

interface ConsumeContext extends ConsumeParts {
  readonly desk: LeaseDesk;
  readonly jetstream: BrokerStream;
  readonly token: string;
  readonly subject: string;
  readonly leaseSecs: number;
}

const fetchMs = 5_000;
const publishTimeoutMs = 5_000;
/** Of a message whose call cannot be taken now. */
const laterMs = 5_000;
const longestWaitMs = 5_000;
/** In characters; the gateway stores longer ones. */
const errorLength = 500;

/** @throws TypeError for a configuration that no gateway has */
export function prepareConsume(options: ConsumeOptions, parts: ConsumeParts): () => Promise<void> {
  const { connection, jetstream, runner, token, name = 'tollbook', max = 100, leaseSecs = 60 } = options;
  if (!brokerName.test(name) || !brokerName.test(runner))
    throw new TypeError('name and runner must be 1 to 64 of A-Z, a-z, 0-9, "_" and "-"');
  if (typeof token !== 'string' || token === '') throw new TypeError('the token is empty');
  requireWhole('max', max, 1, 1_000);
  requireWhole('leaseSecs', leaseSecs, 5, 3_600);
  const names = brokerNames(name);
  const desk = createLeaseDesk({ connection, subject: names.leaseSubject(runner), token, leaseSecs });
  const subject = names.resultSubject(runner);
  const context = { ...parts, desk, jetstream, token, subject, leaseSecs };
  return () => consumeUntilStopped(context, { stream: names.callStream, consumer: runner, max });
}

async function consumeUntilStopped(
  context: ConsumeContext,
  { stream, consumer: name, max }: { stream: string; consumer: string; max: number },
): Promise<void> {
  const { slots, stopping, tell } = context;
  let failures = 0;
  let unstarted = 0;
  const serve = async (message: BrokerMessage): Promise<void> => {
    unstarted += 1;
    let isStarted = false;
    await serveMessage(context, message, () => {
      unstarted -= 1;
      isStarted = true;
    });
    if (!isStarted) unstarted -= 1;
  };
  while (!stopping.aborted) {
    try {
      const consumer = await context.jetstream.consumers.get(stream, name);
      while (!stopping.aborted) {
        await slots.untilFree(stopping);
        const room = Math.min(max, slots.free() - unstarted);
        // fetched calls take their slots in a moment
        if (room <= 0) await pause(10, stopping);
        if (room <= 0 || stopping.aborted) continue;
        const messages = await consumer.fetch({ max_messages: room, expires: fetchMs });
        const stop = (): void => messages.stop();
        stopping.addEventListener('abort', stop, { once: true });
        try {
          for await (const message of messages) context.track(serve(message));
        } finally {
          stopping.removeEventListener('abort', stop);
        }
        failures = 0;
      }
    } catch (cause) {
      if (stopping.aborted) return;
      const message = `consuming ${name} of ${stream}: ${(cause as Error).message}`;
      tell.error(new RunnerError('broker_unreachable', message, { cause }));
      await pause(retryWaitMs(failures, longestWaitMs), stopping);
      failures += 1;
    }
  }
}

/** A call as its message names it. */
interface Message {
  readonly call: ReceivedCall;
  readonly leaseId: string;
  readonly metadata: CallMetadata;
}

/** Takes the call of a message, runs it and reports its result. Never rejects. */
async function serveMessage(
  context: ConsumeContext,
  message: BrokerMessage,
  onStarted: () => void,
): Promise<void> {
  const { tell, desk, stopping } = context;
  try {
    const read = readMessage(context, message);
    // another runner may read it, which has the right token and time; the broker deletes it if none does
    if (!read) return message.nak(laterMs);
    // a runner that stops leaves it to another one
    if (stopping.aborted) return message.nak();
    const { call } = read;
    const newLeaseId = randomUUID();
    const grant = await desk.hold(
      { callId: call.callId, leaseId: read.leaseId, newLeaseId },
      publishTimeoutMs,
    );
    if (grant.kind === 'unanswered' || grant.kind === 'later') return message.nak(laterMs);
    // the lease is in the database: the broker has nothing to do with the call any more
    message.ack();
    if (grant.kind === 'lost') return;
    await serveCall(context, { ...read, leaseId: newLeaseId }, grant.lastsMs, onStarted);
  } catch (cause) {
    tell.error(
      new RunnerError('runner_failed', 'a call of the broker failed: its lease runs out', { cause }),
    );
  }
}

/** Undefined, and reported, for a message that the gateway did not sign. */
function readMessage({ tell, token: secret }: ConsumeContext, message: BrokerMessage): Message | undefined {
  const headers = Object.fromEntries(
    (message.headers?.keys() ?? []).map((name) => [name, message.headers?.get(name)]),
  );
  const { data } = message;
  const body = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  const nowSecs = Math.floor(Date.now() / 1_000);
  const verification = verifyCall({ secret, headers, body, nowSecs });
  if (!verification.ok) {
    const text = `a call on the broker was not signed by the gateway: ${verification.reason}`;
    tell.error(new RunnerError('signature_refused', text));
    return undefined;
  }
  const { id, metadata } = verification;
  const call = readCall(metadata, headers['content-type'], body, headers['traceparent']);
  const leaseId = metadata[leaseHeader];
  if (call?.idempotencyKey === id && isCallId(call.callId) && isLeaseId(leaseId))
    return { call, leaseId, metadata };
  tell.error(new RunnerError('call_malformed', `call ${id} lacks what every call has`));
  return undefined;
}

async function serveCall(
  context: ConsumeContext,
  message: Message,
  firstMs: number,
  onStarted: () => void,
): Promise<void> {
  const { runs, over, tell, desk } = context;
  const { call, leaseId } = message;
  const lost = new AbortController();
  const done = new AbortController();
  const ended = AbortSignal.any([done.signal, over]);
  const kept = {
    firstMs,
    async extend(timeoutMs: number) {
      const grant = await desk.hold({ callId: call.callId, leaseId, newLeaseId: leaseId }, timeoutMs);
      if (grant.kind === 'held') return grant;
      return grant.kind === 'lost'
        ? ({ kind: 'lost', reason: 'another attempt has it now' } as const)
        : ({ kind: 'again' } as const);
    },
    onLost(reason: string) {
      const text = `call ${call.callId}: the lease is lost: ${reason}`;
      tell.error(new RunnerError('lease_lost', text, { call: factsOf(call) }));
      lost.abort();
    },
  };
  void keepLease(kept, ended);
  try {
    const token = progressToken(context.token, { callId: call.callId, leaseId });
    const heard = AbortSignal.any([ended, lost.signal]);
    const progress = createReporterOf(message.metadata, leaseId, token, heard);
    const running = runs.take(call, { via: 'jetstream', lost: lost.signal, ...(progress && { progress }) });
    onStarted();
    const outcome = await running;
    if (outcome.kind !== 'lost') await report(context, message, outcome, lost.signal);
  } finally {
    done.abort();
  }
}

/** Publishes the outcome of a call, repeatedly until the broker has stored it. */
async function report(
  context: ConsumeContext,
  { call, leaseId }: Pick<Message, 'call' | 'leaseId'>,
  outcome: Exclude<Outcome, { kind: 'lost' }>,
  lost: AbortSignal,
): Promise<void> {
  const { jetstream, subject, token, over, tell } = context;
  const { callId } = call;
  const sealed = sealResult(token, { callId, leaseId, outcome: reported(outcome) });
  const given = AbortSignal.any([over, lost]);
  for (let failures = 0; ; failures += 1) {
    try {
      await jetstream.publish(subject, sealed, { msgID: leaseId, timeout: publishTimeoutMs });
      return;
    } catch (cause) {
      const told = (reason: string): void => {
        const text = `call ${callId}: the broker did not take its outcome: ${reason}`;
        tell.error(new RunnerError('result_undelivered', text, { call: factsOf(call), cause }));
      };
      // longer than the broker's max_payload: it would be refused for as long as the lease is extended
      if (outcome.kind === 'completed' && (cause as Error).name === 'InvalidArgumentError') {
        const message = (cause as Error).message;
        told(message);
        return report(
          context,
          { call, leaseId },
          { kind: 'refused', code: 'result_too_large', message },
          lost,
        );
      }
      if (failures === 0) told(`the runner retries: ${(cause as Error).message}`);
      if (!(await pause(retryWaitMs(failures, longestWaitMs), given))) return told('the runner has given up');
    }
  }
}

function reported(outcome: Exclude<Outcome, { kind: 'lost' }>): ReportedOutcome {
  if (outcome.kind === 'completed') {
    const { contentType, body = Buffer.alloc(0) } = outcome.result ?? {};
    return { kind: 'completed', contentType, price: outcome.price, body };
  }
  const error = `${outcome.code}: ${outcome.message}`.slice(0, errorLength).toWellFormed();
  const afterSecs = outcome.kind === 'retry' ? (outcome.afterSecs ?? 0) : 0;
  return { kind: 'failed', error, retry: outcome.kind === 'retry', retryAfterSecs: Math.ceil(afterSecs) };
}
