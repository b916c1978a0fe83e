import type { Config, JobsConfig } from '../../base/config/config.ts';
import type { LedgerDatabase } from '../../ledger/store/database.ts';
import type { Lane } from '../../ledger/store/lane.ts';
import type { Address } from '../../base/values/primitives.ts';
import { countPayable, countUndecided } from '../store/unsettled.ts';

/** A payer's payments without a known outcome take at most this share of the places of all. */
const payersShare = 1 / 10;
/** A settle request is no longer under way this long after its time limits. */
const graceSecs = 5;

export interface SlotPorts {
  readonly lane: Lane;
  readonly db: LedgerDatabase;
  readonly settings: JobsConfig;
  readonly config: Config;
}

/** How long after its start a payment without an outcome may still have its first settle request under way. */
export function underWaySecs({ settings }: { readonly settings: JobsConfig }): number {
  return (settings.facilitatorSettleTimeoutMs + settings.confirmTimeoutMs) / 1_000 + graceSecs;
}

/**
 * Whether one more payment of this payer may be started although its outcome may stay unknown. Such payments have a number of places,
 * so that sales stop before too many are in doubt; the undecided ones of one payer never take the last places of others. A payment that
 * cannot be settled any more waits for its chain alone, and holds no place: a chain that cannot be read does not stop sales.
 */
export async function hasSettlementSlot(context: SlotPorts, payer: Address): Promise<boolean> {
  const { lane, db, settings, config } = context;
  const { unsettledCalls } = lane.state;
  const { maxUnsettledCalls } = config.limits;
  const mostOfPayer = Math.max(1, Math.floor(maxUnsettledCalls * payersShare));
  // no client has more slots than there are
  if (unsettledCalls < mostOfPayer) return true;
  if ((await countUndecided(db, payer, underWaySecs(context))) >= mostOfPayer) return false;
  if (unsettledCalls < maxUnsettledCalls) return true;
  return (await countPayable(db, settings.maxTimeoutSecs + underWaySecs(context))) < maxUnsettledCalls;
}
