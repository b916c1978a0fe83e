import type { OperatorLog } from '../../base/values/operator-log.ts';
import { LedgerInconsistentError } from '../store/halt.ts';

/** Runs one step after another until it is stopped. */
export interface Loop {
  /** Runs the next step immediately instead of at the next poll. */
  wake(): void;
  /** Resolves after the running step. */
  stop(): Promise<void>;
}

export interface LoopOptions {
  readonly pollMs: number;
  readonly log: Pick<OperatorLog, 'error'>;
  /** Logged if a step throws, with these fields. */
  readonly failureMessage: string;
  readonly fields?: object;
  /** Runs after the last step: ends the work and connections that the steps began. */
  readonly onStopped?: () => Promise<unknown>;
}

/**
 * Runs `step` now, then whenever it returns true, the loop is woken, or `pollMs` have passed.
 * A step that throws is logged and repeated at the next poll: a loop never ends by itself.
 */
export function startLoop(
  step: () => Promise<boolean | void>,
  { pollMs, log, failureMessage, fields, onStopped }: LoopOptions,
): Loop {
  let stopping = false;
  let woken = false;
  let wakeUp: (() => void) | undefined;

  const idle = (): Promise<void> =>
    new Promise((resolve) => {
      if (woken || stopping) return resolve();
      const timer = setTimeout(resolve, pollMs);
      wakeUp = () => {
        clearTimeout(timer);
        resolve();
      };
    });

  const run = async (): Promise<void> => {
    while (!stopping) {
      woken = false;
      let again: boolean | void = false;
      try {
        again = await step();
      } catch (error) {
        // a halted ledger was logged once already
        if (!(error instanceof LedgerInconsistentError)) log.error({ err: error, ...fields }, failureMessage);
      }
      if (!again) await idle();
    }
  };
  const running = run();

  const wake = (): void => {
    woken = true;
    wakeUp?.();
  };
  return {
    wake,
    async stop() {
      stopping = true;
      wake();
      await running;
      await onStopped?.();
    },
  };
}
