import type { LedgerEvent } from '../domain/event.ts';
import { readStream } from '../store/streams.ts';
import type { Gateway } from './gateway.ts';

interface NamedRunner {
  readonly name: string;
}

/**
 * A runner that answers 410 wants no more calls. That is an event in the runner's own stream, so every process knows it
 * and a restart does not forget it; the operator resumes it.
 */
export async function pauseRunner(gateway: Gateway, runner: NamedRunner): Promise<void> {
  const data = { runner: runner.name, reason: 'status_410' };
  if (!(await change(gateway, runner, { type: 'operator_runner_paused', data }))) return;
  gateway.log.error(
    { runner: runner.name },
    'runner paused: it answered 410; resume it with `tollbook runners resume`',
  );
}

/** Lets calls go to a paused runner again. False where it was not paused. */
export function resumeRunner(gateway: Pick<Gateway, 'pool' | 'lane'>, runner: NamedRunner): Promise<boolean> {
  return change(gateway, runner, { type: 'operator_runner_resumed', data: { runner: runner.name } });
}

export async function isRunnerPaused(gateway: Pick<Gateway, 'pool'>, runner: NamedRunner): Promise<boolean> {
  return (await standing(gateway, runner)).paused;
}

async function standing(gateway: Pick<Gateway, 'pool'>, runner: NamedRunner) {
  const { events } = await readStream(gateway.pool, runnerStream(runner));
  const last = events.at(-1);
  return { paused: last?.type === 'operator_runner_paused', version: last?.version ?? 0 };
}

/** False where the runner stands so already, or another process was faster. */
async function change(
  gateway: Pick<Gateway, 'pool' | 'lane'>,
  runner: NamedRunner,
  event: LedgerEvent,
): Promise<boolean> {
  const { paused, version } = await standing(gateway, runner);
  if (paused === (event.type === 'operator_runner_paused')) return false;
  const command = { stream: runnerStream(runner), expect: version, events: [event] };
  return (await gateway.lane.append(command, { urgent: true })).outcome === 'ok';
}

function runnerStream(runner: NamedRunner): string {
  return `runner:${runner.name}`;
}
