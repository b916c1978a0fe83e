import type { OperatorLog } from '../../base/values/operator-log.ts';
import type { CallbackPorts, sendCallback } from '../use-cases/callbacks.ts';
import { createPromiseTracker } from '../../base/runtime/promise-tracker.ts';
import { collectCallbacks, type TakenCallback, takeCallbacks } from '../store/callbacks.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';

const pollMs = 1_000;
const maxEvents = 5_000;
/** One that never answers takes one of these places for ten seconds at a time, and no place of deliveries. */
const atOnce = 64;
/** Of one payer: others have places left. */
const atOnceOfPayer = 8;

/**
 * Calls the clients back whose paid calls have ended: each callback in one process at a time. None if the configuration allows none.
 * @param call sends one
 */
export function startCallbackSender(
  current: () => CallbackPorts & { readonly log: OperatorLog },
  call: typeof sendCallback,
): readonly Loop[] {
  const { config, pool, log } = current();
  if (!config.callbacks) return [];
  const running = createPromiseTracker();
  const ofPayer = new Map<string, number>();
  const count = (payer: string, change: number): void => {
    const left = (ofPayer.get(payer) ?? 0) + change;
    if (left > 0) ofPayer.set(payer, left);
    else ofPayer.delete(payer);
  };
  const send = async (taken: TakenCallback): Promise<void> => {
    const { payer } = taken;
    count(payer, 1);
    try {
      await call(current(), taken);
    } catch (error) {
      // it is due again in a minute
      log.error({ err: error, quote_digest: taken.stream }, 'a callback could not be sent');
    } finally {
      count(payer, -1);
    }
  };
  const step = async (): Promise<boolean> => {
    const isMore = (await collectCallbacks(pool, maxEvents)) === maxEvents;
    const free = atOnce - running.size;
    const busy = [...ofPayer].filter(([, places]) => places >= atOnceOfPayer).map(([payer]) => payer);
    const taken = free > 0 ? await takeCallbacks(pool, free, busy) : [];
    for (const one of taken) void running.add(send(one)).then(() => loop.wake());
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
