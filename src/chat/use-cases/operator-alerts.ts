import type { EventData } from '../../ledger/rules/event.ts';
import { createHourly } from '../../base/runtime/hourly.ts';
import type { Lane } from '../../ledger/store/lane.ts';

/** Records for the operator that an upstream reports usage that cannot be true. */
export type UsageAlert = (data: EventData<'operator_usage_implausible'>) => Promise<void>;

/** At most one record an hour for an upstream and its model: a broken one would be reported for every completion. */
export function createUsageAlert(lane: Pick<Lane, 'append'>): UsageAlert {
  const mayReport = createHourly();
  return async (data) => {
    if (!mayReport(`${data.upstream} ${data.model}`)) return;
    await lane.append(
      { stream: 'operator:upstreams', events: [{ type: 'operator_usage_implausible', data }] },
      { urgent: true },
    );
  };
}

/** Records for the operator that payouts wait because of the gas. */
export type PayoutAlert = (data: EventData<'operator_payouts_postponed'>) => Promise<void>;

/** At most one record an hour for each reason. */
export function createPayoutAlert(lane: Pick<Lane, 'append'>): PayoutAlert {
  const mayReport = createHourly();
  return async (data) => {
    if (!mayReport(data.reason)) return;
    await lane.append(
      { stream: 'operator:spend', events: [{ type: 'operator_payouts_postponed', data }] },
      { urgent: true },
    );
  };
}
