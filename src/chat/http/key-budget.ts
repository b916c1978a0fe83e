import { creditText, parseCredit } from '../../base/values/price.ts';
import type { BudgetPeriod, BudgetTerms, KeyBudget } from '../../accounts/store/api-keys.ts';
import type { KeyBudgetJson } from '../../accounts/http/schemas/budget.ts';

/** A budget as its schema has checked it. */
export function budgetTerms(
  requested: { readonly amount: string; readonly period: BudgetPeriod } | undefined,
): BudgetTerms | undefined {
  const micros = requested && parseCredit(requested.amount);
  return requested && micros !== undefined ? { micros, period: requested.period } : undefined;
}

export function budgetJson(budget: KeyBudget | undefined): KeyBudgetJson | null {
  if (!budget) return null;
  const { micros, period, spentMicros, until } = budget;
  return {
    amount: creditText(BigInt(micros)),
    period,
    spent: creditText(BigInt(spentMicros)),
    remaining: creditText(BigInt(micros - spentMicros)),
    starts_anew_at: until.toISOString(),
  };
}
