import { z } from 'zod';
import { parseCredit } from '../../../base/values/price.ts';
import { budgetPeriods } from '../../store/api-keys.ts';
import { time } from '../../../base/http/values.ts';

/** An amount of the currency. */
export const credit = z
  .string()
  .regex(/^(?:0|[1-9]\d{0,9})(?:\.\d{1,6})?$/)
  .meta({ description: 'In the currency, as a decimal string.', examples: ['4.250001'] });

/** An amount in a request; unlike amounts in answers it may have fewer decimal digits. */
export const requestedCredit = z.string().regex(/^(?:0|[1-9]\d{0,8})(?:\.\d{1,6})?$/);

export const requestedAmount = requestedCredit
  .refine((text) => parseCredit(text) !== 0n, 'must be above 0')
  .meta({ description: 'In the currency, above 0.', examples: ['5.00'] });

const period = z
  .enum(budgetPeriods)
  .meta({ description: 'A UTC day, or a UTC month: the budget starts anew with each.', examples: ['day'] });

export const requestedBudget = z
  .strictObject({
    amount: requestedAmount,
    period,
  })
  .describe('The amount that the key may spend in each period, in addition to its cap; none by default.');

export const keyBudget = z
  .strictObject({
    amount: credit,
    period,
    spent: credit.describe('Spent in this period, holds included.'),
    remaining: credit,
    starts_anew_at: time.describe('The end of this period.'),
  })
  .describe('What the key may spend in each period.');

/** What a key may spend, and on what. */
export const keyTerms = {
  models: z.array(z.string()).nullable().describe('The models that the key may use; null: all.'),
  cap: credit
    .nullable()
    .describe('The most that the key may spend in total; null: no limit except the balance.'),
  spent: credit.describe('Spent so far, holds included.'),
  budget: keyBudget.nullable(),
};

export type KeyBudgetJson = z.infer<typeof keyBudget>;
