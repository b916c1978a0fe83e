/** A loop that runs one step after another until it is stopped. */
export interface Loop {
  /** Looks again at once instead of at the next poll. */
  wake(): void;
  /** Ends after the step that is running. */
  stop(): Promise<void>;
}

/**
 * Runs `step` now, then whenever it asks to go on at once (true), is woken, or `pollMs` have passed.
 * A step that throws is reported and tried again at the next poll: a loop never ends by itself.
 */
export function startLoop(
  step: () => Promise<boolean | void>,
  pollMs: number,
  onError: (error: unknown) => void,
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
        onError(error);
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
    },
  };
}
