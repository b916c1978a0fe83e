import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Commodities } from '../../../../src/audit/rules/bookkeeping/commodity.ts';
import { anyOption } from '../../../payments/rules/support.ts';
import { propertyRuns } from '../../../support/property-runs.ts';

test('two tokens never share a commodity name, and every name is valid in beancount', () => {
  fc.assert(
    fc.property(fc.array(anyOption, { maxLength: 20 }), fc.boolean(), (options, areAlike) => {
      const commodities = new Commodities();
      const tokens = options.map((option) => ({
        ...option,
        ...(areAlike ? { symbol: 'usdc', network: 'eip155:8453' } : {}),
      }));
      const keys = new Set(tokens.map((token) => `${token.network}/${token.asset}/${token.decimals}`));
      const names = tokens.map((token) => commodities.token(token).name);
      expect(new Set(names).size).toBe(keys.size);
      for (const name of names) expect(name).toMatch(/^[A-Z][A-Z0-9'._-]{0,22}[A-Z0-9]$/);
    }),
    propertyRuns(),
  );
});

test('a token whose commodity name is taken gets its own name, and the first token keeps its name', () => {
  const commodities = new Commodities();
  const token = { network: 'eip155:8453', asset: `0x${'ab'.repeat(20)}`, symbol: 'USDC', decimals: 6 };
  const names = [token, { ...token, asset: `0x${'cd'.repeat(20)}` }, { ...token, decimals: 18 }, token].map(
    (one) => commodities.token(one).name,
  );
  expect(names).toEqual(['USDC-8453', 'USDC-CDCDCD-8453', 'USDC-ABABAB-8453', 'USDC-8453']);
});
