import type pg from 'pg';
import { callFunction } from './functions.ts';

/** Takes up to `wanted` events of a kind, of `perSecond` over all gateways and `most` at once. Returns how many it took. */
export function takeEventAllowance(
  pool: pg.Pool,
  {
    kind,
    wanted,
    perSecond,
    most,
  }: { readonly kind: string; readonly wanted: number; readonly perSecond: number; readonly most: number },
): Promise<number> {
  return callFunction(pool, 'take_event_allowance', [kind, wanted, perSecond, most]);
}
