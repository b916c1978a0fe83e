import { expect, test } from 'vitest';
import { chatIncome } from '../../../../src/audit/rules/bookkeeping/account.ts';

test('models with similar spellings have separate income accounts', () => {
  const models = ['gpt-4o', 'Gpt-4o', 'gpt/4o', 'openai/gpt-4o:free', '=cmd()', '"', ';'];
  const accounts = models.map((model) => chatIncome(model));
  expect(new Set(accounts).size).toBe(models.length);
  for (const account of accounts) expect(account).toMatch(/^Income:Chat:[A-Z0-9][A-Za-z0-9-]*$/);
});
