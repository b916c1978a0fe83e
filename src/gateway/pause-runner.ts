import type { RunnerConfig } from '../config/config.ts';
import type { LedgerEvent } from '../domain/event.ts';
import { readStream } from '../store/streams.ts';
import type { Gateway } from './gateway.ts';

/**
 * A runner that answers 410 wants no more calls. That is an event in the runner's own stream, so every process knows it
 * and a restart does not forget it; the operator resumes it.
 */
export async function pauseRunner(gateway: Gateway, runner: RunnerConfig): Promise<void> {
  if (await isRunnerPaused(gateway, runner)) return;
  await append(gateway, runner, {
    type: 'operator_runner_paused',
    data: { runner: runner.name, reason: 'status_410' },
  });
  gateway.log.error(
    { runner: runner.name },
    'runner paused: it answered 410; resume it with `tollbook runners resume`',
  );
}

/** Lets calls go to a paused runner again. False where it was not paused. */
export async function resumeRunner(
  gateway: Pick<Gateway, 'db' | 'lane'>,
  runner: { readonly name: string },
): Promise<boolean> {
  if (!(await isRunnerPaused(gateway, runner))) return false;
  await append(gateway, runner, { type: 'operator_runner_resumed', data: { runner: runner.name } });
  return true;
}

export async function isRunnerPaused(
  gateway: Pick<Gateway, 'db'>,
  runner: { readonly name: string },
): Promise<boolean> {
  const { events } = await readStream(gateway.db, runnerStream(runner));
  return events.at(-1)?.type === 'operator_runner_paused';
}

async function append(
  gateway: Pick<Gateway, 'lane'>,
  runner: { readonly name: string },
  event: LedgerEvent,
): Promise<void> {
  await gateway.lane.append({ stream: runnerStream(runner), events: [event] }, { urgent: true });
}

function runnerStream(runner: { readonly name: string }): string {
  return `runner:${runner.name}`;
}
