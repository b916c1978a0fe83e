import type { EventData } from '../../../ledger/rules/event.ts';
import { createHourly } from '../../../base/runtime/hourly.ts';
import type { Lane } from '../../../ledger/store/lane.ts';

/** Records for the operator that payouts wait because of the gas. */
export type PayoutAlert = (data: EventData<'operator_payouts_postponed'>) => Promise<void>;

const stream = 'operator:spend';

/** At most one record an hour for each reason. */
export function createPayoutAlert(lane: Pick<Lane, 'append'>): PayoutAlert {
  const mayReport = createHourly();
  return async (data) => {
    if (!mayReport(data.reason)) return;
    await lane.append({ stream, events: [{ type: 'operator_payouts_postponed', data }] }, { urgent: true });
  };
}
