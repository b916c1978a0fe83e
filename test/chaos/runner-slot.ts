import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { type GuardedChild, startGuardedChild } from './guarded-child.ts';

const runShape = z.object({
  callId: z.int(),
  idempotencyKey: z.string(),
  attempt: z.int(),
  quoteDigest: z.string(),
  bodySha256: z.string(),
});
/** One run of a call, as the runner reports it. */
export type RunnerRun = z.infer<typeof runShape>;

/** Keeps one runner process alive: when it dies, the next one is started. */
export interface RunnerSlot {
  kill(): void;
  stop(): Promise<void>;
  readonly runs: readonly RunnerRun[];
  readonly log: () => string;
}

/** @param args of `runner-process.ts` */
export function createRunnerSlot(args: readonly string[]): RunnerSlot {
  const runs: RunnerRun[] = [];
  let child: GuardedChild | undefined;
  let isStopping = false;
  let logs = '';

  const run = async (): Promise<void> => {
    while (!isStopping) {
      const started = await startGuardedChild({
        args: [path.join(import.meta.dirname, 'runner-process.ts'), ...args],
        cwd: path.resolve(import.meta.dirname, '../..'),
      });
      child = started;
      started.onLine((line) => runs.push(runShape.parse(JSON.parse(line))));
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
    kill: () => child?.signal('SIGKILL'),
    async stop() {
      isStopping = true;
      child?.signal('SIGKILL');
      await running;
    },
  };
}
