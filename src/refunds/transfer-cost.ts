import type pg from 'pg';
import { ownAccounts } from '../costs/own-accounts.ts';
import { type CostAnswer, type CostOrder, recordCost } from '../costs/record-cost.ts';
import type { Lane } from '../store/lane.ts';
import type { Chains } from './final-transfers.ts';

/** What a recorded transaction was sent for, and what recording its cost said. */
export interface TransferCost extends Omit<CostOrder, 'own'> {
  readonly answer: CostAnswer;
}

/**
 * Records what the transaction of a recorded transfer cost, if an account of the operator sent it. That is an addition: what is
 * recorded of the transfer stands, whatever the answer.
 * @param from whose tokens it moved: an account of the operator, by that record
 */
export async function recordTransferCost(
  ledger: { readonly pool: pg.Pool; readonly lane: Lane },
  chains: Chains,
  order: Omit<CostOrder, 'own'>,
  from: string,
): Promise<TransferCost> {
  const own = await ownAccounts(ledger.pool, order.network, [from]);
  return { ...order, answer: await recordCost(ledger, { ...order, own }, chains.get(order.network)) };
}
