import type { JobsContext } from '../use-cases/context.ts';
import { extendMs } from '../use-cases/price-list.ts';
import { extendPrices } from '../../payments/store/price-windows.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';

/** Keeps the prices that this gateway offers to version 1 clients payable. */
export function startPriceExtender(current: () => JobsContext): Loop {
  return startLoop(() => extendPrices(current().pool, current().priceList), {
    pollMs: extendMs,
    log: current().log,
    failureMessage:
      'the offered prices could not be extended: version 1 clients may lose them when they change',
  });
}
