import { setImmediate as nextTurn } from 'node:timers/promises';
import { onTestFinished, vi } from 'vitest';

/** A time limit of the program that a test lets end is at least as long; no timer of a client, a server or a test is. */
const shortestMs = 30_000;

/**
 * The time limits of the program that end when the test says so: by themselves they could end, on a busy machine, before what they are
 * to interrupt has begun.
 */
export interface HeldDeadlines {
  /** Those that run: how long each is, in milliseconds. */
  running(): number[];
  /** Ends those that run, or those of this length, once what was written to a local socket has been read: how long each was. */
  end(ofMs?: number): Promise<number[]>;
}

/** Holds this process's timers of 30 seconds and more until the test ends. */
export function holdDeadlines(): HeldDeadlines {
  const { setTimeout: set, clearTimeout: clear } = globalThis;
  const held = new Map<unknown, { readonly ms: number; readonly run: () => void }>();
  const setting = vi.spyOn(globalThis, 'setTimeout').mockImplementation(((
    run: (...given: unknown[]) => void,
    ms = 0,
    ...given: unknown[]
  ) => {
    if (ms < shortestMs) return set(run, ms, ...given);
    const timer = set(() => {}, ms).unref();
    held.set(timer, { ms, run: () => run(...given) });
    return timer;
  }) as typeof setTimeout);
  const clearing = vi.spyOn(globalThis, 'clearTimeout').mockImplementation((timer) => {
    held.delete(timer);
    clear(timer);
  });
  onTestFinished(() => {
    setting.mockRestore();
    clearing.mockRestore();
    for (const timer of held.keys()) clear(timer as NodeJS.Timeout);
  });
  return {
    running: () => Array.from(held.values(), ({ ms }) => ms),
    async end(ofMs) {
      for (let turn = 0; turn < 5; turn++) await nextTurn();
      const ended = [...held].filter(([, { ms }]) => ofMs === undefined || ms === ofMs);
      for (const [timer, { run }] of ended) {
        // one that the end of another has stopped does not run
        if (!held.delete(timer)) continue;
        clear(timer as NodeJS.Timeout);
        run();
      }
      return ended.map(([, { ms }]) => ms);
    },
  };
}

/** The monotonic clock of this process is this much further from now on, until the test ends. */
export function passTime(ms: number): void {
  const before = performance.now.bind(performance);
  performance.now = () => before() + ms;
  onTestFinished(() => void (performance.now = before));
}
