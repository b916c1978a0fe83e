import type { EventType } from './event.ts';

/** The public counters: each is the number of events of the types named. */
const counterTypes = {
  accepted: ['enqueued'],
  denied: ['auth_denied'],
  replay_denied: ['replay_denied'],
  enqueue_failed: ['enqueue_failed'],
  dry_run: ['dry_run_allowed', 'dry_run_denied', 'dry_run_error'],
  quoted: ['quote_issued'],
  settled: ['payment_settled'],
  settlement_unknown: ['settlement_unknown'],
  settlement_failed: ['settlement_failed'],
  settlement_disproved: ['settlement_disproved'],
  settlement_reorged: ['settlement_reorged'],
  dry_run_allowed: ['dry_run_allowed'],
  dry_run_denied: ['dry_run_denied'],
  dry_run_error: ['dry_run_error'],
  delivered: ['delivered'],
  completed: ['completed'],
  dead_lettered: ['dead_lettered'],
} as const satisfies Record<string, readonly EventType[]>;

export type Counters = Record<keyof typeof counterTypes, number>;

/** The public counters from the number of events of each type. */
export function countersFrom(countOf: ReadonlyMap<string, number>): Counters {
  const entries = Object.entries(counterTypes).map(([name, types]) => [
    name,
    types.reduce((sum, type) => sum + (countOf.get(type) ?? 0), 0),
  ]);
  return Object.fromEntries(entries) as Counters;
}
