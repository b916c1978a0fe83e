import type { LedgerEvent } from '../domain/events/event.ts';
import { readStream } from '../store/streams.ts';
import type { JobsContext } from './context.ts';

interface NamedRunner {
  readonly name: string;
}

/**
 * A runner that answers 410 wants no more calls. That is an event in the runner's own stream, so every process knows it
 * and a restart does not forget it; the operator resumes it.
 */
export async function pauseRunner(context: JobsContext, runner: NamedRunner): Promise<void> {
  const data = { runner: runner.name, reason: 'status_410' };
  if (!(await change(context, runner, { type: 'operator_runner_paused', data }))) return;
  context.log.error(
    { runner: runner.name },
    'runner paused: it answered 410; resume it with `tollbook runners resume`',
  );
}

/** Lets calls go to a paused runner again. False where it was not paused. */
export function resumeRunner(
  context: Pick<JobsContext, 'pool' | 'lane'>,
  runner: NamedRunner,
): Promise<boolean> {
  return change(context, runner, { type: 'operator_runner_resumed', data: { runner: runner.name } });
}

export async function isRunnerPaused(
  context: Pick<JobsContext, 'pool'>,
  runner: NamedRunner,
): Promise<boolean> {
  return (await standing(context, runner)).paused;
}

async function standing(context: Pick<JobsContext, 'pool'>, runner: NamedRunner) {
  const { events } = await readStream(context.pool, runnerStream(runner));
  const last = events.at(-1);
  return { paused: last?.type === 'operator_runner_paused', version: last?.version ?? 0 };
}

/** False where the runner stands so already, or another process was faster. */
async function change(
  context: Pick<JobsContext, 'pool' | 'lane'>,
  runner: NamedRunner,
  event: LedgerEvent,
): Promise<boolean> {
  const { paused, version } = await standing(context, runner);
  if (paused === (event.type === 'operator_runner_paused')) return false;
  const command = { stream: runnerStream(runner), expect: version, events: [event] };
  return (await context.lane.append(command, { urgent: true })).outcome === 'ok';
}

function runnerStream(runner: NamedRunner): string {
  return `runner:${runner.name}`;
}
