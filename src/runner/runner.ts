import { type ConsumeOptions, prepareConsume } from './consume.ts';
import { RunnerError } from './errors.ts';
import { createTeller, type Hooks } from './hooks.ts';
import { type Job, requireTimeout, requireWhole } from './job.ts';
import { type Listening, type ListenOptions, type PushServer, startPushServer } from './listen.ts';
import { type PollOptions, preparePoll } from './poll.ts';
import { answerPush, type PushAnswer, type PushRequest } from './push.ts';
import { createRuns } from './runs.ts';
import { createSlots } from './slots.ts';
import { pause } from '../base/runtime/pause.ts';
import { createPromiseTracker } from '../base/runtime/promise-tracker.ts';

export interface RunnerOptions extends Hooks {
  readonly jobs: readonly Job[];
  /** Simultaneous runs of all jobs together. Default 16. */
  readonly concurrency?: number | undefined;
  /** When a run is aborted and its call retried. Default 25 s: a gateway waits 30 s for a push by default. */
  readonly timeoutMs?: number | undefined;
  /** The limit of a result; a longer one becomes a dead letter, as above the gateway's limit. Default: the gateway decides alone. */
  readonly maxResultBytes?: number | undefined;
  /** Stops the runner when it aborts, as `stop` does. */
  readonly signal?: AbortSignal | undefined;
  /** How long `signal` lets runs finish. Default 30 s. */
  readonly graceMs?: number | undefined;
}

/** One runner: the same handlers, whether calls are pushed to it, fetched by it or taken from a broker. */
export interface Runner {
  /** Takes pushed calls. Rejects if the address is taken. */
  listen(options: ListenOptions): Promise<Listening>;
  /** The same for your own server. Rejects only without a secret. */
  handle(request: PushRequest, options: { readonly secret: string }): Promise<PushAnswer>;
  /**
   * Fetches calls until the runner stops: resolves then. Rejects with a RunnerError if the gateway refuses this
   * runner, as with a token that it does not know; while the gateway is unreachable or overloaded, it retries.
   */
  poll(options: PollOptions): Promise<void>;
  /** Takes calls from a NATS broker until the runner stops: resolves then. While the broker is unreachable, it retries. */
  consume(options: ConsumeOptions): Promise<void>;
  /**
   * Takes no new calls, and resolves when the running ones have ended and been answered. What runs after `graceMs` is
   * aborted and given back. Safe to call twice.
   */
  stop(options?: { readonly graceMs?: number | undefined }): Promise<void>;
}

const defaultGraceMs = 30_000;
/** To say of aborted runs that they were, and no longer. */
const farewellMs = 2_000;

/**
 * A runner of these jobs; nothing happens before it listens, polls or consumes.
 * @throws TypeError for no job, a job twice, or an invalid bound
 */
export function createRunner(options: RunnerOptions): Runner {
  const { jobs, concurrency = 16, timeoutMs = 25_000, maxResultBytes = 2 ** 30 } = options;
  requireWhole('concurrency', concurrency, 1, 10_000);
  requireWhole('maxResultBytes', maxResultBytes, 0, 2 ** 30);
  requireTimeout(timeoutMs);
  requireDistinct(jobs);
  const tell = createTeller(options);
  const slots = createSlots(concurrency);
  const runs = createRuns({ jobs, slots, timeoutMs, maxResultBytes, tell });
  const stopping = new AbortController();
  const over = new AbortController();
  const servers: PushServer[] = [];
  const serving = createPromiseTracker();

  const answer = (request: PushRequest, secret: string): Promise<PushAnswer> =>
    serving.add(answerPush(request, { secret, runs, tell }));
  const requireRunning = (): void => {
    if (stopping.signal.aborted) throw new Error('the runner has been stopped');
  };

  const shutDown = async (graceMs: number): Promise<void> => {
    runs.close();
    stopping.abort();
    const closed = Promise.all(servers.map((server) => server.close()));
    // a call that is answered may leave a connection to close, so both are waited for
    const finished = (async () => {
      await serving.drained();
      await closed;
    })();
    const inTime = new AbortController();
    void finished.then(() => inTime.abort());
    if (await pause(graceMs, inTime.signal)) {
      runs.endAll();
      await pause(farewellMs, inTime.signal);
    }
    over.abort();
    for (const server of servers) server.cut();
    await closed;
  };
  let stopped: Promise<void> | undefined;
  const stop: Runner['stop'] = ({ graceMs = defaultGraceMs } = {}) => (stopped ??= shutDown(graceMs));
  const { signal, graceMs } = options;
  if (signal?.aborted) void stop({ graceMs });
  signal?.addEventListener('abort', () => void stop({ graceMs }), { once: true });

  return {
    stop,
    async listen(listenOptions) {
      requireRunning();
      requireSecret(listenOptions.secret);
      const server = await startPushServer(listenOptions, {
        answer: (request) => answer(request, listenOptions.secret),
        isStopping: () => stopping.signal.aborted,
        tell,
      });
      if (stopping.signal.aborted) await server.close();
      requireRunning();
      servers.push(server);
      return { port: server.port, url: server.url };
    },
    async handle(request, { secret }) {
      requireSecret(secret);
      return answer(request, secret);
    },
    async poll(pollOptions) {
      requireRunning();
      const own = createPromiseTracker();
      const services = [...new Set(jobs.map(({ serviceId }) => serviceId))];
      const parts = { services, runs, slots, tell, stopping: stopping.signal, over: over.signal };
      const poll = preparePoll(pollOptions, {
        ...parts,
        track: (promise) => void own.add(serving.add(promise)),
      });
      try {
        await poll();
      } catch (error) {
        if (error instanceof RunnerError) tell.error(error);
        throw error;
      }
      await own.drained();
    },
    async consume(consumeOptions) {
      requireRunning();
      const own = createPromiseTracker();
      const parts = { runs, slots, tell, stopping: stopping.signal, over: over.signal };
      const consume = prepareConsume(consumeOptions, {
        ...parts,
        track: (promise) => void own.add(serving.add(promise)),
      });
      await consume();
      await own.drained();
    },
  };
}

function requireSecret(secret: string): void {
  if (typeof secret !== 'string' || secret === '') throw new TypeError('the secret is empty');
}

function requireDistinct(jobs: readonly Job[]): void {
  if (jobs.length === 0) throw new TypeError('a runner without a job');
  const names = jobs.map(({ serviceId, jobIndex }) => `${serviceId}/${jobIndex}`);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice) throw new TypeError(`job ${twice} is there twice`);
}
