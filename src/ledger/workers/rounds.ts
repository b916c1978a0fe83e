import type { OperatorLog } from '../../base/values/operator-log.ts';
import { LedgerInconsistentError } from '../store/halt.ts';
import { type Loop, type LoopOptions, startLoop } from './loop.ts';

export interface RoundsOptions<Item> extends Omit<LoopOptions, 'log' | 'onStopped'> {
  readonly log: Pick<OperatorLog, 'error' | 'warn'>;
  /** What has rounds at this moment. */
  readonly items: () => readonly Item[];
  readonly nameOf: (item: Item) => string;
  /** One round. Returns in how many milliseconds this process looks again; undefined for the next poll. `stopping` ends a long one. */
  readonly run: (item: Item, stopping: AbortSignal) => Promise<number | void>;
  /** Logged, with `roundFields`, if a round throws: it is run again. */
  readonly roundFailureMessage: string;
  readonly roundFields?: (item: Item) => object;
}

/** After a failure, an item's next round. */
const failedMs = 1_000;

/** Runs the rounds of several items at the same time, each item's one after another: a slow one delays no other. */
export function startRounds<Item>({
  items,
  nameOf,
  run,
  roundFailureMessage,
  roundFields,
  ...options
}: RoundsOptions<Item>): Loop {
  const running = new Map<string, Promise<void>>();
  const dueMs = new Map<string, number>();
  const stopping = new AbortController();
  const runOne = async (item: Item, name: string): Promise<void> => {
    try {
      const inMs = await run(item, stopping.signal);
      dueMs.set(name, performance.now() + (inMs ?? 0));
    } catch (error) {
      dueMs.set(name, performance.now() + failedMs);
      // a halted ledger was logged once already
      if (error instanceof LedgerInconsistentError) return;
      options.log.warn({ err: error, ...roundFields?.(item) }, roundFailureMessage);
    } finally {
      running.delete(name);
    }
  };
  const loop = startLoop(
    async () => {
      for (const item of items()) {
        const name = nameOf(item);
        if (running.has(name) || performance.now() < (dueMs.get(name) ?? 0)) continue;
        running.set(name, runOne(item, name));
      }
    },
    { ...options, onStopped: () => Promise.all(running.values()) },
  );
  return {
    wake: () => loop.wake(),
    stop() {
      stopping.abort();
      return loop.stop();
    },
  };
}
