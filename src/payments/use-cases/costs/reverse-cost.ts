import { costStream, costTerms } from '../../../base/values/transaction-cost.ts';
import { chainIdOf, type Caip2, type Hex } from '../../../base/values/primitives.ts';
import { readLastEvent } from '../../../ledger/store/streams.ts';
import type { CostLedger, RecordedCost } from './record-cost.ts';

/** An operator's statement that the record of a transaction's cost is wrong. */
export interface CostReversalOrder {
  readonly network: Caip2;
  readonly transaction: Hex;
  readonly why: string;
  readonly operator: string;
}

export type CostReversalRefusal = 'not_recorded' | 'superseded';

export type CostReversalAnswer =
  | { readonly kind: 'reversed'; readonly cost: RecordedCost }
  | { readonly kind: 'refused'; readonly code: CostReversalRefusal };

const maxTries = 5;

/** Takes the record of a transaction's cost back, so that the books do not have it any more and it can be recorded rightly. */
export async function reverseCost(
  { pool, lane }: CostLedger,
  { network, transaction, why, operator }: CostReversalOrder,
): Promise<CostReversalAnswer> {
  const stream = costStream(chainIdOf(network) ?? 0, transaction);
  for (let tries = 0; tries < maxTries; tries++) {
    const last = await readLastEvent(pool, stream);
    if (last?.type !== 'transaction_cost_recorded') return { kind: 'refused', code: 'not_recorded' };
    const { version, data: cost } = last;
    const data = { ...costTerms(cost), why, operator };
    const events = [{ type: 'operator_cost_reversed' as const, data }];
    const { outcome } = await lane.append({ stream, expect: version, events });
    if (outcome === 'ok') return { kind: 'reversed', cost };
  }
  return { kind: 'refused', code: 'superseded' };
}
