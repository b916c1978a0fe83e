import type { Consumer, JetStreamClient, JetStreamManager, JsMsg } from '@nats-io/jetstream';
import type { Msg, NatsConnection, NodeConnectionOptions } from '@nats-io/transport-node';
import type { JetStreamConfig } from '../../../base/config/jetstream.ts';
import { brokerNames, messageOverheadBytes } from '../../../base/values/broker/names.ts';
import { pause } from '../../../base/runtime/pause.ts';
import { createPromiseTracker, type PromiseTracker } from '../../../base/runtime/promise-tracker.ts';
import { createConcurrencyLimit } from '../../../base/runtime/concurrency-limit.ts';
import type { Broker, BrokerHandlers, BrokerState, CallMessage, PublishAnswer } from './broker.ts';
import { prepareStreams } from './streams.ts';

export interface BrokerOptions extends BrokerHandlers {
  readonly settings: JetStreamConfig;
  /** The names of those that take their calls from it. */
  readonly runners: readonly string[];
  /** The longest body of a call or result. */
  readonly maxBodyBytes: number;
}

const retryMs = 1_000;
const requestTimeoutMs = 5_000;
/** A call that was refused is tried again sooner, while it is still needed. */
const refusalMs = 60_000;
const publishAttempts = 3;
/** A stream that loses its leader has another one after a few seconds. */
const publishTimeoutMs = 2_000;
const publishPauseMs = 250;
const resultsAtOnce = 64;
/** A result that could not be recorded comes again. */
const againMs = 2_000;
/** How soon a request for messages is repeated that a server has lost. */
const pullMs = 5_000;

interface Session {
  readonly connection: NatsConnection;
  readonly manager: JetStreamManager;
  readonly stream: JetStreamClient;
}

/** A session whose streams and consumers are compared with the configuration. */
interface ServedSession extends Session {
  readonly prepared: Preparation;
}

/** What the broker learns of its sessions. */
interface Keeper {
  readonly closing: AbortSignal;
  readonly handling: PromiseTracker;
  readonly enter: (state: BrokerState) => void;
  readonly hold: (session: ServedSession) => void;
}

const starting: BrokerState = { kind: 'away', detail: 'not connected yet' };

/** A broker that is connected in the background: it may be away when the gateway starts, and at any time later. */
export function openBroker(options: BrokerOptions): Broker {
  const { settings, onState } = options;
  const names = brokerNames(settings.name);
  const closing = new AbortController();
  const handling = createPromiseTracker();
  let session: ServedSession | undefined;
  let found = starting;
  /** Why the last call was refused. */
  let refusal: { readonly detail: string; readonly atMs: number } | undefined;
  let told = found;
  const state = (): BrokerState => {
    const isRefusing = refusal !== undefined && performance.now() - refusal.atMs < refusalMs;
    return found.kind === 'ready' && isRefusing ? { kind: 'refusing', detail: refusal?.detail ?? '' } : found;
  };
  const tell = (): void => {
    const next = state();
    const isChange = JSON.stringify(next) !== JSON.stringify(told);
    told = next;
    if (isChange && !closing.signal.aborted) onState(next);
  };
  const enter = (next: BrokerState): void => {
    found = next;
    tell();
  };
  const hold = (next: ServedSession): void => void (session = next);
  const running = keepSession(options, { closing: closing.signal, handling, enter, hold });

  const publish = async (call: CallMessage): Promise<PublishAnswer> => {
    for (let attempt = 1; ; attempt += 1) {
      const answer = session ? await publishOnce(session, names, call) : away;
      if (answer.kind !== 'unanswered' || attempt === publishAttempts) return answer;
      if (!(await pause(publishPauseMs, closing.signal))) return answer;
    }
  };

  return {
    state,
    async publish(call) {
      const answer = await publish(call);
      if (answer.kind === 'stored') refusal = undefined;
      if (answer.kind === 'refused') refusal = { detail: answer.reason, atMs: performance.now() };
      tell();
      // its stream may be missing
      if (answer.kind === 'unanswered') session?.prepared.repeat();
      return answer;
    },
    async countWaiting(runner) {
      if (!session) return away;
      try {
        const info = await session.manager.consumers.info(names.callStream, runner);
        return { kind: 'counted', messages: info.num_pending + info.num_ack_pending };
      } catch (error) {
        // somebody may have deleted it, or its stream
        session.prepared.repeat();
        return { kind: 'unanswered', reason: (error as Error).message };
      }
    },
    async close() {
      closing.abort();
      await running;
      await handling.drained();
      await session?.connection.close();
    },
  };
}

/** NATS's own: insufficient resources, a message that the stream cannot store. */
const fullCodes: ReadonlySet<number> = new Set([10_023, 10_077]);

const away = { kind: 'unanswered', reason: 'not connected' } as const;

async function publishOnce(
  { stream }: Session,
  names: ReturnType<typeof brokerNames>,
  { runner, serviceId, jobIndex, messageId, headers, body }: CallMessage,
): Promise<PublishAnswer> {
  const { headers: createHeaders, InvalidArgumentError } = await import('@nats-io/transport-node');
  const { JetStreamApiError } = await import('@nats-io/jetstream');
  const sent = createHeaders();
  for (const [name, value] of Object.entries(headers)) sent.set(name, value);
  try {
    await stream.publish(names.callSubject(runner, serviceId, jobIndex), body, {
      headers: sent,
      msgID: messageId,
      timeout: publishTimeoutMs,
      expect: { streamName: names.callStream },
    });
    return { kind: 'stored' };
  } catch (error) {
    const reason = (error as Error).message;
    // 503 is also the answer of a stream that has no leader at the moment
    const isRefused =
      (error instanceof JetStreamApiError && (error.status !== 503 || fullCodes.has(error.code))) ||
      error instanceof InvalidArgumentError;
    return { kind: isRefused ? 'refused' : 'unanswered', reason };
  }
}

/** Connects, again and again until the broker is closed. A connection that breaks is made again by the client itself. */
async function keepSession(options: BrokerOptions, keeper: Keeper): Promise<void> {
  const { closing, enter } = keeper;
  while (!closing.aborted) {
    try {
      await serveSession(options, await openSession(options.settings), keeper);
    } catch (error) {
      enter({ kind: 'away', detail: (error as Error).message });
    }
    await pause(retryMs, closing);
  }
}

async function openSession(settings: JetStreamConfig): Promise<Session> {
  const { jetstream, jetstreamManager } = await import('@nats-io/jetstream');
  const connection = await connectBroker(settings);
  try {
    const manager = await jetstreamManager(connection, { timeout: requestTimeoutMs, checkAPI: false });
    return { connection, manager, stream: jetstream(connection, { timeout: requestTimeoutMs }) };
  } catch (error) {
    await connection.close();
    throw error;
  }
}

/** Until the connection is closed for good, or the broker is. */
async function serveSession(
  options: BrokerOptions,
  session: Session,
  { closing, handling, enter, hold }: Keeper,
): Promise<void> {
  const { connection } = session;
  const over = new AbortController();
  const ended = AbortSignal.any([closing, over.signal]);
  const prepared = createPreparation(options, session, ended, enter);
  hold({ ...session, prepared });
  const leases = answerLeases(options, connection, handling);
  void watchConnection(connection, prepared.repeat, enter);
  const results = takeResults(options, session, { ended, handling, prepared });
  prepared.repeat();
  await Promise.race([
    connection.closed(),
    new Promise((resolve) => ended.addEventListener('abort', resolve, { once: true })),
  ]);
  enter({ kind: 'away', detail: 'the connection was closed' });
  over.abort();
  for (const subscription of leases) subscription.unsubscribe();
  await results;
}

type Preparation = ReturnType<typeof createPreparation>;

function createPreparation(
  { settings, runners, maxBodyBytes }: BrokerOptions,
  { connection, manager }: Session,
  ended: AbortSignal,
  enter: Keeper['enter'],
) {
  let isRunning = false;
  let isWanted = false;
  const seen = new Set<string>();
  const run = async (): Promise<void> => {
    while (isWanted && !ended.aborted) {
      isWanted = false;
      try {
        const mistakes = [
          ...payloadMistake(connection, maxBodyBytes),
          ...(await prepareStreams(manager, settings, runners, seen)),
        ];
        if (!isWanted) enter(mistakes.length > 0 ? { kind: 'wrong', mistakes } : { kind: 'ready' });
        // an operator corrects them at the broker
        if (mistakes.length > 0) isWanted = await pause(10 * retryMs, ended);
      } catch (error) {
        enter({ kind: 'away', detail: (error as Error).message });
        isWanted = await pause(retryMs, ended);
      }
    }
  };
  return {
    /** Compares the broker with the configuration again. */
    repeat(): void {
      isWanted = true;
      if (isRunning) return;
      isRunning = true;
      void run().finally(() => (isRunning = false));
    },
  };
}

function payloadMistake({ info }: NatsConnection, maxBodyBytes: number): string[] {
  const needed = maxBodyBytes + messageOverheadBytes;
  const has = info?.max_payload ?? 0;
  if (has >= needed) return [];
  return [
    `max_payload of the servers is ${has} bytes, and bodies and results of up to ${maxBodyBytes} bytes need ${needed}: raise it in ` +
      'nats-server.conf, or lower limits.max_body_bytes',
  ];
}

async function watchConnection(
  connection: NatsConnection,
  onReconnect: () => void,
  enter: (state: BrokerState) => void,
): Promise<void> {
  for await (const status of connection.status()) {
    if (status.type === 'disconnect') enter({ kind: 'away', detail: 'the connection broke' });
    if (status.type === 'reconnect') onReconnect();
  }
}

function answerLeases(
  { settings, runners, onLeaseRequest }: BrokerOptions,
  connection: NatsConnection,
  handling: PromiseTracker,
) {
  const names = brokerNames(settings.name);
  const answer = async (runner: string, message: Msg): Promise<void> => {
    const reply = await onLeaseRequest(runner, message.data);
    if (reply) message.respond(reply);
  };
  const handle = (runner: string, message: Msg): void => {
    // a request without an answer is sent again
    handling.add(answer(runner, message)).catch(() => {});
  };
  return runners.map((runner) =>
    connection.subscribe(names.leaseSubject(runner), {
      // each request is answered by one gateway
      queue: 'gateways',
      callback: (error, message) => {
        if (!error) handle(runner, message);
      },
    }),
  );
}

/** Takes results until the session ends, several simultaneously. */
async function takeResults(
  { settings, onResult }: BrokerOptions,
  { stream }: Session,
  { ended, handling, prepared }: { ended: AbortSignal; handling: PromiseTracker; prepared: Preparation },
): Promise<void> {
  const names = brokerNames(settings.name);
  const turns = createConcurrencyLimit(resultsAtOnce);
  const take = async (message: JsMsg): Promise<void> => {
    const runner = message.subject.split('.').at(-1) ?? '';
    const verdict = await turns.take(() => onResult(runner, message.data)).catch(() => 'again' as const);
    if (verdict === 'done') message.ack();
    else message.nak(againMs);
  };
  while (!ended.aborted) {
    try {
      const consumer = await stream.consumers.get(names.resultStream, names.resultConsumer);
      await readMessages(consumer, ended, (message) => void handling.add(take(message)));
    } catch {
      // its stream or consumer may be missing, and is made again
      if (!ended.aborted) prepared.repeat();
    }
    await pause(retryMs, ended);
  }
}

async function readMessages(
  consumer: Consumer,
  ended: AbortSignal,
  onMessage: (message: JsMsg) => void,
): Promise<void> {
  const messages = await consumer.consume({
    max_messages: 4 * resultsAtOnce,
    expires: pullMs,
    abort_on_missing_resource: true,
  });
  const stop = (): void => messages.stop();
  ended.addEventListener('abort', stop, { once: true });
  if (ended.aborted) stop();
  try {
    for await (const message of messages) onMessage(message);
  } finally {
    ended.removeEventListener('abort', stop);
  }
}

type Connecting = Pick<JetStreamConfig, 'servers' | 'login'>;

const connectTimeoutMs = 5_000;
const reconnectWaitMs = 500;

/** Connects once, and keeps the connection: it is made again whenever it breaks. The client is loaded only if it is used. */
async function connectBroker(settings: Connecting): Promise<NatsConnection> {
  const { connect, nkeyAuthenticator } = await import('@nats-io/transport-node');
  const { servers, login } = settings;
  const options: NodeConnectionOptions = {
    servers: [...servers],
    name: 'tollbook gateway',
    timeout: connectTimeoutMs,
    maxReconnectAttempts: -1,
    reconnectTimeWait: reconnectWaitMs,
    ignoreAuthErrorAbort: true,
    pingInterval: 10_000,
    maxPingOut: 2,
    ...(login?.kind === 'password' && { user: login.user, pass: login.password }),
    ...(login?.kind === 'nkey' && { authenticator: nkeyAuthenticator(new TextEncoder().encode(login.seed)) }),
    // a server that the client learns from another one is not to be reached in plain text either
    ...(servers.some((server) => /^tls:/i.test(server)) && { tls: {} }),
  };
  return connect(options);
}
