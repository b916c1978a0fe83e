import type { Gateway } from '../gateway/gateway.ts';
import { resolveSettlement } from '../gateway/resolve-settlement.ts';
import { takeUnsettled, type UnsettledCall } from '../store/unsettled.ts';
import { type Loop, startLoop } from './loop.ts';

const pollMs = 1_000;
/** A settle that hangs must not keep the others waiting. */
const atOnce = 16;

/** Looks after settlements whose outcome nobody has recorded, until each is resolved. */
export function startResolver(current: () => Gateway): Loop {
  const running = new Set<Promise<void>>();

  const resolve = async (call: UnsettledCall): Promise<void> => {
    try {
      await resolveSettlement(current(), call);
    } catch (error) {
      // it is due again by itself
      current().log.error(
        { err: error, quote_digest: call.stream },
        'a settlement could not be looked after',
      );
    }
  };

  const step = async (): Promise<boolean> => {
    const free = atOnce - running.size;
    if (free <= 0) return false;
    const calls = await takeUnsettled(current().pool, free);
    for (const call of calls) {
      const work = resolve(call).finally(() => {
        running.delete(work);
        if (running.size === atOnce - 1) loop.wake();
      });
      running.add(work);
    }
    return false;
  };
  const loop = startLoop(step, pollMs, (error) =>
    current().log.error({ err: error }, 'the resolver could not look for open settlements'),
  );

  return {
    wake: () => loop.wake(),
    async stop() {
      await loop.stop();
      await Promise.all(running);
    },
  };
}
