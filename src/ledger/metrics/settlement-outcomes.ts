import type { LedgerEvent } from '../rules/event.ts';

type SettlementOutcome =
  | 'settled'
  | 'confirmed'
  | 'unknown'
  | 'failed'
  | 'disproved'
  | 'reorged'
  | 'resolved_by_operator';

const outcomes: Readonly<Partial<Record<LedgerEvent['type'], SettlementOutcome>>> = {
  payment_settled: 'settled',
  settlement_confirmed: 'confirmed',
  settlement_unknown: 'unknown',
  settlement_failed: 'failed',
  settlement_disproved: 'disproved',
  settlement_reorged: 'reorged',
  operator_settlement_resolved: 'resolved_by_operator',
};

/** What an event of this type says about a settlement; other types are missing. */
export const settlementOutcomes: ReadonlyMap<string, string> = new Map(Object.entries(outcomes));
