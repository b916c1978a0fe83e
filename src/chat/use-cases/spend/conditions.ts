import type { AlertCondition } from '../../../base/values/alert-condition.ts';
import type { SpendContext } from './context.ts';

/** What the operator is alerted about in spends now. */
export function spendConditions({
  operatorBalance,
  prepaid,
}: Pick<SpendContext, 'operatorBalance' | 'prepaid'>): AlertCondition[] {
  if (!operatorBalance.isLow()) return [];
  const text = `The operator's key ${prepaid.operator} has too little ether to land and pay out spends: they are refused or wait.`;
  return [{ kind: 'low_gas', subject: `operator ${prepaid.operator}`, text }];
}
