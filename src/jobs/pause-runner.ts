import type { LedgerEvent } from '../domain/events/event.ts';
import { readStream } from '../store/streams.ts';
import type { JobsContext } from './context.ts';

interface NamedRunner {
  readonly name: string;
}

/**
 * A runner that answers 410 takes no more calls. That is an event in the runner's own stream, so that it holds for every
 * process and after a restart, until the operator resumes it.
 */
export async function pauseRunner(context: JobsContext, runner: NamedRunner): Promise<void> {
  const data = { runner: runner.name, reason: 'status_410' };
  const { kind } = await change(context, runner, { type: 'operator_runner_paused', data });
  if (kind === 'unchanged') return;
  context.log.error(
    { runner: runner.name },
    'runner paused: it answered 410; resume it with `tollbook runners resume`',
  );
}

/** Lets calls go to a paused runner again. */
export function resumeRunner(
  context: Pick<JobsContext, 'pool' | 'lane'>,
  runner: NamedRunner,
): Promise<RunnerChange> {
  return change(context, runner, { type: 'operator_runner_resumed', data: { runner: runner.name } });
}

export async function isRunnerPaused(
  context: Pick<JobsContext, 'pool'>,
  runner: NamedRunner,
): Promise<boolean> {
  return (await readState(context, runner)).paused;
}

async function readState(context: Pick<JobsContext, 'pool'>, runner: NamedRunner) {
  const { events } = await readStream(context.pool, runnerStream(runner));
  const last = events.at(-1);
  return { paused: last?.type === 'operator_runner_paused', version: last?.version ?? 0 };
}

/** `unchanged`: the runner has this state already, or another process was faster. */
export type RunnerChange = { readonly kind: 'changed' } | { readonly kind: 'unchanged' };

async function change(
  context: Pick<JobsContext, 'pool' | 'lane'>,
  runner: NamedRunner,
  event: LedgerEvent,
): Promise<RunnerChange> {
  const { paused, version } = await readState(context, runner);
  if (paused === (event.type === 'operator_runner_paused')) return { kind: 'unchanged' };
  const command = { stream: runnerStream(runner), expect: version, events: [event] };
  const { outcome } = await context.lane.append(command, { urgent: true });
  return { kind: outcome === 'ok' ? 'changed' : 'unchanged' };
}

function runnerStream(runner: NamedRunner): string {
  return `runner:${runner.name}`;
}
