import type { JobsContext } from '../jobs/context.ts';
import { extendMs } from '../jobs/price-list.ts';
import { extendPrices } from '../store/price-windows.ts';
import { type Loop, startLoop } from './loop.ts';

/** Keeps the prices that this gateway offers to version 1 clients payable. */
export function startPriceExtender(current: () => JobsContext): Loop {
  return startLoop(() => extendPrices(current().pool, current().priceList), {
    pollMs: extendMs,
    log: current().log,
    failureMessage:
      'the offered prices could not be extended: version 1 clients may lose them when they change',
  });
}
