import type { EventData, LedgerEvent } from '../../ledger/rules/event.ts';
import { createBoundedCache } from '../../base/values/bounded-cache.ts';
import type { Lane } from '../../ledger/store/lane.ts';

type AlertType = 'operator_usage_implausible' | 'operator_payouts_postponed';
type Alert<Type extends AlertType> = (data: EventData<Type>) => Promise<void>;

/** Records for the operator that an upstream reports usage that cannot be true. */
export type UsageAlert = Alert<'operator_usage_implausible'>;
/** Records for the operator that payouts wait because of the gas. */
export type PayoutAlert = Alert<'operator_payouts_postponed'>;

/** One for an upstream and its model: a broken one would be reported for every completion. */
export function createUsageAlert(lane: Pick<Lane, 'append'>): UsageAlert {
  return alertHourly(
    lane,
    'operator:upstreams',
    'operator_usage_implausible',
    ({ upstream, model }) => `${upstream} ${model}`,
  );
}

/** One for each reason. */
export function createPayoutAlert(lane: Pick<Lane, 'append'>): PayoutAlert {
  return alertHourly(lane, 'operator:spend', 'operator_payouts_postponed', ({ reason }) => reason);
}

const maxKeys = 1_000;
const hourMs = 3_600_000;

/** Records at most one event an hour for each key. */
function alertHourly<Type extends AlertType>(
  lane: Pick<Lane, 'append'>,
  stream: string,
  type: Type,
  keyOf: (data: EventData<Type>) => string,
): Alert<Type> {
  const recordedMs = createBoundedCache<string, number>(maxKeys);
  return async (data) => {
    const nowMs = performance.now();
    const last = recordedMs.get(keyOf(data));
    if (last !== undefined && nowMs < last + hourMs) return;
    recordedMs.set(keyOf(data), nowMs);
    // the type names the data
    await lane.append({ stream, events: [{ type, data } as LedgerEvent] }, { urgent: true });
  };
}
