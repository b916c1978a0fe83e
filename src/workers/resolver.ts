import type { JobsContext } from '../jobs/context.ts';
import { resolveKept, resolveSettlement, type SettleSlots } from '../jobs/resolve-settlement.ts';
import { endFollowUps, takeFollowUps } from '../store/follow-ups.ts';
import { takeUnsettled } from '../store/unsettled.ts';
import { type Loop, startLoop } from './loop.ts';
import { createPromiseTracker } from '../runtime/promise-tracker.ts';

const pollMs = 1_000;
/** Looks at once. */
const atOnce = 16;
/** Settles among them: one that hangs must not keep payments waiting that landed long ago. */
const settlesAtOnce = 4;

/** Looks after settlements whose outcome nobody has recorded, until each is resolved. */
export function startResolver(current: () => JobsContext): Loop {
  const running = createPromiseTracker();
  const slots = createSlots(settlesAtOnce);

  const run = (stream: string, look: () => Promise<void>): void => {
    const work = look().catch((error: unknown) =>
      current().log.error(
        { err: error, quote_digest: stream },
        'an open settlement could not be looked up: it is tried again',
      ),
    );
    void running.add(work).then(() => running.size === atOnce - 1 && loop.wake());
  };

  const step = async (): Promise<void> => {
    const { pool } = current();
    const free = atOnce - running.size;
    if (free <= 0) return;
    const calls = await takeUnsettled(pool, free);
    for (const call of calls) run(call.stream, () => resolveSettlement(current(), call, slots));
    const kept = await takeFollowUps(pool, 'resolve', undefined, Math.max(1, free - calls.length));
    for (const followUp of kept)
      run(followUp.stream, async () => {
        const isOver = await resolveKept(current(), followUp, slots);
        if (isOver) await endFollowUps(pool, 'resolve', [followUp.seq]);
      });
  };
  const loop = startLoop(step, {
    pollMs,
    log: current().log,
    failureMessage: 'open settlements could not be read',
    async onStopped() {
      await running.drained();
    },
  });
  return loop;
}

function createSlots(count: number): SettleSlots {
  let free = count;
  return {
    async use(settle) {
      if (free === 0) return undefined;
      free -= 1;
      try {
        return await settle();
      } finally {
        free += 1;
      }
    },
  };
}
