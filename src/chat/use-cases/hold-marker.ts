import type pg from 'pg';
import { markHoldsStarted } from '../../accounts/store/credit.ts';

/** Marks holds as started, many in one statement: their answers are about to be passed on. */
export interface HoldMarker {
  /**
   * Resolves when the mark is durable; only then may the first byte be passed on. False when the hold no longer exists: another
   * process has released it because this one's heartbeats were missing.
   */
  mark(chatId: string): Promise<boolean>;
}

interface Waiting {
  readonly chatId: string;
  readonly resolve: (isHeld: boolean) => void;
  readonly reject: (error: unknown) => void;
}

/** One statement at a time; holds that arrive meanwhile share the next one. */
export function createHoldMarker(pool: pg.Pool): HoldMarker {
  let waiting: Waiting[] = [];
  let isBusy = false;

  const flush = async (): Promise<void> => {
    isBusy = true;
    while (waiting.length > 0) {
      const together = waiting;
      waiting = [];
      try {
        const held = await markHoldsStarted(
          pool,
          together.map(({ chatId }) => chatId),
        );
        for (const { chatId, resolve } of together) resolve(held.has(chatId));
      } catch (error) {
        for (const { reject } of together) reject(error);
      }
    }
    isBusy = false;
  };

  return {
    mark: (chatId) =>
      new Promise((resolve, reject) => {
        waiting.push({ chatId, resolve, reject });
        if (!isBusy) void flush();
      }),
  };
}
