import type { Hex } from '../../src/base/values/primitives.ts';
import { payTo, vault } from './chain.ts';
import { chart, coin } from './chart.ts';
import type { World } from './world.ts';

/** A transaction of the operator is an expense, once it is recorded what it was sent for. */
export async function spendGas(
  { chain, model, nowMs }: World,
  transaction: Hex,
  purpose: 'Refund' | 'Sweep' | 'Transfer',
): Promise<void> {
  const { payer, wei } = await chain.gasOf(transaction);
  if (payer !== payTo && payer !== vault) throw new Error(`${payer} is not an account of the operator`);
  model.post(nowMs, chart.gas(purpose), chart.gasOf(payer), coin, wei);
}
