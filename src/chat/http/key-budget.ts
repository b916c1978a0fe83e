import { creditText, parseCredit } from '../../base/values/price.ts';
import type { ApiKey, BudgetPeriod, BudgetTerms, KeyBudget } from '../../accounts/store/api-keys.ts';
import type { KeyBudgetJson } from '../../accounts/http/schemas/budget.ts';

/** A budget as its schema has checked it. */
export function budgetTerms(
  requested: { readonly amount: string; readonly period: BudgetPeriod } | undefined,
): BudgetTerms | undefined {
  const micros = requested && parseCredit(requested.amount);
  return requested && micros !== undefined ? { micros, period: requested.period } : undefined;
}

/** What users, clients and operators see of a key. */
export function keyFacts({ name, models, capMicros, spentMicros, ...key }: ApiKey) {
  return {
    name,
    models: models ? [...models] : null,
    cap: capMicros === undefined ? null : creditText(BigInt(capMicros)),
    spent: creditText(BigInt(spentMicros)),
    budget: budgetJson(key.budget),
    created_at: key.createdAt.toISOString(),
    expires_at: key.expiresAt?.toISOString() ?? null,
    last_used_at: key.lastUsedAt?.toISOString() ?? null,
  };
}

function budgetJson(budget: KeyBudget | undefined): KeyBudgetJson | null {
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
