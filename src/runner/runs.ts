import { factsOf, type ReceivedCall } from './call.ts';
import { RunnerError, type RunnerErrorCode } from './errors.ts';
import { execute, type ExecuteOptions } from './execute.ts';
import type { Teller } from './hooks.ts';
import type { Job } from './job.ts';
import { deferred } from '../base/runtime/deferred.ts';
import type { ReportProgress } from './progress.ts';
import { type Lost, type Outcome, type Refused, type Retry, stoppingOutcome } from './outcome.ts';

export interface RunsOptions extends ExecuteOptions {
  readonly jobs: readonly Job[];
}

export interface TakeOptions {
  readonly via: 'push' | 'lease' | 'jetstream';
  /** Aborts when the requester gives up. A run without a requester is aborted, except a pushed one. */
  readonly lost?: AbortSignal;
  /** Takes the handler's reports about the call, if this request begins its run. */
  readonly progress?: ReportProgress;
}

export interface Runs {
  /** Runs a call, or joins the run that it has already. Never rejects. */
  take(call: ReceivedCall, options: TakeOptions): Promise<Outcome>;
  /** From now on new calls are sent back. */
  close(): void;
  /** Ends whatever still runs. */
  endAll(): void;
}

interface Run {
  readonly outcome: Promise<Outcome>;
  holders: number;
  /** Decides the outcome, unless it is decided, and aborts the handler. */
  readonly end: (outcome: Outcome) => void;
}

const leaseLost: Lost = { kind: 'lost', code: 'lease_lost', message: 'the lease is lost' };
const full: Retry = { kind: 'retry', code: 'runner_full', message: 'the runner is busy', afterSecs: 1 };

/** The calls that are being run, each once however often it is delivered meanwhile. */
export function createRuns(options: RunsOptions): Runs {
  const { slots, tell } = options;
  const jobs = new Map(options.jobs.map((job) => [`${job.serviceId}/${job.jobIndex}`, job]));
  const running = new Map<string, Run>();
  let closed = false;

  const wiredJob = (call: ReceivedCall): Job | Refused => {
    const name = `job ${call.serviceId}/${call.jobIndex}`;
    const job = jobs.get(`${call.serviceId}/${call.jobIndex}`);
    if (!job) return { kind: 'refused', code: 'job_unknown', message: `this runner has no ${name}` };
    if (job.handlers.has(call.trigger)) return job;
    const wired = [...job.handlers.keys()].join(', ');
    const message = `${name} is not wired for calls by ${call.trigger}, only for: ${wired}`;
    return { kind: 'refused', code: 'trigger_not_wired', message };
  };

  const begin = (
    key: string,
    call: ReceivedCall,
    { via, progress = () => {} }: TakeOptions,
  ): Run | Outcome => {
    const startedAt = performance.now();
    const reported = <T extends Outcome>(outcome: T): T => {
      tellOutcome(tell, call, via, outcome, performance.now() - startedAt);
      return outcome;
    };
    const job = wiredJob(call);
    if ('kind' in job) return reported(job);
    if (closed) return reported(stoppingOutcome);
    // a pushed call can go to another runner; a leased call belongs to this one and waits
    const hasSlot = slots.tryTake(job);
    if (!hasSlot && via === 'push') return reported(full);

    const controller = new AbortController();
    const ended = deferred<Outcome>();
    const outcome = (async () => {
      if (!hasSlot && !(await slots.take(job, controller.signal))) return ended.promise;
      return execute(options, { job, call, controller, progress, ended });
    })().catch(failed);
    const forget = (): void => {
      if (running.get(key) === run) running.delete(key);
    };
    const run: Run = {
      holders: 0,
      end: (forced) => {
        // a run that has ended cannot be joined
        forget();
        ended.resolve(forced);
        controller.abort(new Error('message' in forced ? forced.message : 'ended'));
      },
      outcome: outcome.then((made) => {
        forget();
        return reported(made);
      }),
    };
    running.set(key, run);
    return run;
  };

  const join = async (call: ReceivedCall, taken: TakeOptions): Promise<Outcome> => {
    const { lost } = taken;
    const key = call.idempotencyKey;
    const run = running.get(key) ?? begin(key, call, taken);
    if ('kind' in run) return run;
    run.holders += 1;
    return lost ? hold(run, lost) : run.outcome;
  };

  return {
    async take(call, how) {
      try {
        return await join(call, how);
      } catch (cause) {
        const outcome = failed(cause);
        tellOutcome(tell, call, how.via, outcome, 0);
        return outcome;
      }
    },
    close() {
      closed = true;
    },
    endAll() {
      for (const run of running.values()) run.end(stoppingOutcome);
    },
  };
}

/** Nothing that a handler throws: a fault of this library, or of a Node that lacks a feature. */
function failed(cause: unknown): Retry {
  return { kind: 'retry', code: 'runner_failed', message: 'the runner failed', cause };
}

/** Waits for a run until it ends or the requester gives up. */
async function hold(run: Run, lost: AbortSignal): Promise<Outcome> {
  const given = deferred<Outcome>();
  const giveUp = (): void => {
    given.resolve(leaseLost);
    run.holders -= 1;
    if (run.holders === 0) run.end(leaseLost);
  };
  if (lost.aborted) giveUp();
  lost.addEventListener('abort', giveUp, { once: true });
  try {
    return await Promise.race([run.outcome, given.promise]);
  } finally {
    lost.removeEventListener('abort', giveUp);
  }
}

/** What its author or operator has to look after; the rest is the course of things. */
const worthAnError: ReadonlySet<string> = new Set<RunnerErrorCode>([
  'job_unknown',
  'trigger_not_wired',
  'input_invalid',
  'result_too_large',
  'handler_failed',
  'handler_timeout',
  'runner_failed',
]);

function tellOutcome(
  tell: Teller,
  call: ReceivedCall,
  via: TakeOptions['via'],
  outcome: Outcome,
  ms: number,
): void {
  const facts = factsOf(call);
  const report = { ...facts, via, outcome: outcome.kind, durationMs: Math.round(ms) };
  if (outcome.kind === 'completed') return tell.call(report);
  const { code, message } = outcome;
  tell.call({ ...report, code, message });
  if (!worthAnError.has(code)) return;
  const about = { call: facts, ...('cause' in outcome ? { cause: outcome.cause } : {}) };
  tell.error(new RunnerError(code as RunnerErrorCode, `call ${call.callId}: ${message}`, about));
}
