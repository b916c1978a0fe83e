import {
  type ResolutionPorts,
  resolveTakenBack,
  resolveSettlement,
  type SettleSlots,
} from '../use-cases/resolve-settlement.ts';
import { endFollowUps, takeFollowUps } from '../store/follow-ups.ts';
import { takeUnsettled } from '../store/unsettled.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';
import { createPromiseTracker } from '../../base/runtime/promise-tracker.ts';

const pollMs = 1_000;
/** Settlements that are resolved simultaneously. */
const maxConcurrent = 16;
/** Settle requests among them: one that hangs must not delay payments that have landed. */
const maxConcurrentSettles = 4;

/** Resolves settlements without an outcome. */
export function startResolver(current: () => ResolutionPorts): Loop {
  const running = createPromiseTracker();
  const slots = createSlots(maxConcurrentSettles);

  const run = (stream: string, resolve: () => Promise<void>): void => {
    const work = resolve().catch((error: unknown) =>
      current().log.error(
        { err: error, quote_digest: stream },
        'a settlement could not be resolved: it is tried again',
      ),
    );
    void running.add(work).then(() => running.size === maxConcurrent - 1 && loop.wake());
  };

  const step = async (): Promise<void> => {
    const { pool } = current();
    const free = maxConcurrent - running.size;
    if (free <= 0) return;
    const calls = await takeUnsettled(pool, free);
    for (const call of calls) run(call.stream, () => resolveSettlement(current(), call, slots));
    const takenBack = await takeFollowUps(pool, 'resolve', undefined, Math.max(1, free - calls.length));
    for (const followUp of takenBack)
      run(followUp.stream, async () => {
        const result = await resolveTakenBack(current(), followUp, slots);
        if (result.kind === 'done') await endFollowUps(pool, 'resolve', [followUp.seq]);
      });
  };
  const loop = startLoop(step, {
    pollMs,
    log: current().log,
    failureMessage: 'open settlements could not be read',
    onStopped: () => running.drained(),
  });
  return loop;
}

function createSlots(count: number): SettleSlots {
  let free = count;
  return async (settle) => {
    if (free === 0) return undefined;
    free -= 1;
    try {
      return await settle();
    } finally {
      free += 1;
    }
  };
}
