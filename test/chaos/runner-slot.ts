import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { repositoryRoot } from '../support/planted-copy.ts';
import { type GuardedChild, startGuardedChild } from './guarded-child.ts';
import type { Scope } from './rig.ts';
import type { RunnerWork } from './runner-work.ts';

const runShape = z.object({
  callId: z.int(),
  idempotencyKey: z.string(),
  attempt: z.int(),
  quoteDigest: z.string(),
  bodySha256: z.string(),
});
/** One run of a call, as the runner reports it. */
export interface RunnerRun extends z.infer<typeof runShape> {
  /** Which of the slot's processes, counted from 1. */
  readonly process: number;
}

/** Keeps one runner process alive: when it dies, the next one is started. */
export interface RunnerSlot {
  /** Resolves when its process has ended. */
  kill(): Promise<void>;
  stop(): Promise<void>;
  readonly runs: readonly RunnerRun[];
  readonly log: () => string;
}

/** Starts a runner, and ends it with the scope. */
export function startRunnerSlot(scope: Scope, work: RunnerWork): RunnerSlot {
  const slot = createRunnerSlot(work);
  scope.defer(() => slot.stop());
  return slot;
}

function createRunnerSlot(work: RunnerWork): RunnerSlot {
  const runs: RunnerRun[] = [];
  let child: GuardedChild | undefined;
  let isStopping = false;
  let logs = '';
  let count = 0;

  const run = async (): Promise<void> => {
    while (!isStopping) {
      const started = await startGuardedChild({
        args: [path.join(import.meta.dirname, 'runner-process.ts'), JSON.stringify(work)],
        cwd: repositoryRoot,
      });
      const number = ++count;
      child = started;
      started.onLine((line) => runs.push({ ...runShape.parse(JSON.parse(line)), process: number }));
      if (isStopping) started.signal('SIGKILL');
      await started.ended;
      child = undefined;
      logs += started.log();
      if (!isStopping) await sleep(50);
    }
  };
  const running = run();
  return {
    runs,
    log: () => logs + (child?.log() ?? ''),
    async kill() {
      child?.signal('SIGKILL');
      await child?.ended;
    },
    async stop() {
      isStopping = true;
      child?.signal('SIGKILL');
      await running;
    },
  };
}
