import type { sendCallback } from '../jobs/callbacks.ts';
import type { JobsContext } from '../jobs/context.ts';
import { createPromiseTracker } from '../runtime/promise-tracker.ts';
import { collectCallbacks, type TakenCallback, takeCallbacks } from '../store/callbacks.ts';
import { type Loop, startLoop } from './loop.ts';

const pollMs = 1_000;
const maxEvents = 5_000;
/** One that never answers takes one of these places for ten seconds at a time, and no place of deliveries. */
const atOnce = 32;

/**
 * Calls the clients back whose paid calls have ended: each callback in one process at a time. None where the configuration allows none.
 * @param call sends one
 */
export function startCallbackSender(current: () => JobsContext, call: typeof sendCallback): readonly Loop[] {
  const { config, pool, log } = current();
  if (!config.callbacks) return [];
  const running = createPromiseTracker();
  const send = async (taken: TakenCallback): Promise<void> => {
    try {
      await call(current(), taken);
    } catch (error) {
      // it is due again in a minute
      log.error({ err: error, quote_digest: taken.stream }, 'a callback could not be sent');
    }
  };
  const step = async (): Promise<boolean> => {
    const isMore = (await collectCallbacks(pool, maxEvents)) === maxEvents;
    const free = atOnce - running.size;
    const taken = free > 0 ? await takeCallbacks(pool, free) : [];
    for (const one of taken) void running.add(send(one)).then(() => taken.length === free && loop.wake());
    return isMore;
  };
  const loop = startLoop(step, {
    pollMs,
    log,
    failureMessage: 'due callbacks could not be read',
    onStopped: () => running.drained(),
  });
  return [loop];
}
