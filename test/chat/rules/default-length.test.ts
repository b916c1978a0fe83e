import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { affordableTokens, defaultTokens } from '../../../src/chat/rules/default-length.ts';
import { propertyRuns } from '../../support/property-runs.ts';

const credit = fc.bigInt({ min: 0n, max: 10_000_000n });
const choices = fc
  .record({
    availableMicros: credit,
    askedMicros: fc.oneof(fc.constant(0n), credit),
    mostTokens: fc.integer({ min: 1, max: 100_000 }),
    typicalTokens: fc.integer({ min: 1, max: 200_000 }),
    promptMicros: fc.bigInt({ min: 0n, max: 50_000n }),
    tokenMicros: fc.bigInt({ min: 1n, max: 90n }),
  })
  .map(({ promptMicros, tokenMicros, ...choice }) => ({
    ...choice,
    costOf: (tokens: number): bigint => promptMicros + BigInt(tokens) * tokenMicros,
  }));

describe('the length of an answer whose request sets none', () => {
  test('never costs more than is available, nor exceeds the longest answer of the model', () => {
    fc.assert(
      fc.property(choices, (choice) => {
        const tokens = defaultTokens(choice);
        expect(tokens).toBeLessThanOrEqual(choice.mostTokens);
        return tokens === 0 || choice.costOf(tokens) <= choice.availableMicros;
      }),
      propertyRuns(500),
    );
  });

  test('is the longest of the model where an eighth of the credit pays for it', () => {
    fc.assert(
      fc.property(choices, credit, (choice, moreMicros) => {
        const { mostTokens, costOf, askedMicros } = choice;
        const availableMicros = costOf(mostTokens) * 8n + askedMicros + moreMicros;
        expect(defaultTokens({ ...choice, availableMicros })).toBe(mostTokens);
      }),
      propertyRuns(300),
    );
  });

  test('costs more than an eighth of the credit only up to a typical answer', () => {
    fc.assert(
      fc.property(choices, (choice) => {
        const tokens = defaultTokens(choice);
        const isPart = choice.costOf(tokens) * 8n <= choice.availableMicros - choice.askedMicros;
        expect([tokens, isPart || tokens <= choice.typicalTokens]).toEqual([tokens, true]);
      }),
      propertyRuns(500),
    );
  });

  test('is at least a typical answer of the model where the credit pays for one, and 0 only where it pays for no token', () => {
    fc.assert(
      fc.property(choices, (choice) => {
        const typical = Math.min(choice.typicalTokens, choice.mostTokens);
        const tokens = defaultTokens(choice);
        expect(tokens === 0).toBe(choice.costOf(1) > choice.availableMicros);
        return choice.costOf(typical) > choice.availableMicros || tokens >= typical;
      }),
      propertyRuns(500),
    );
  });

  test('lets any number of requests that leave credit for each other be admitted one after another until the credit is held', () => {
    fc.assert(
      fc.property(choices, fc.integer({ min: 1, max: 30 }), (choice, requests) => {
        const typicalMicros = choice.costOf(Math.min(choice.typicalTokens, choice.mostTokens));
        // the first ones may take up to an eighth each: they halve the credit at most every six requests
        let left = typicalMicros * 8n * 2n ** BigInt(Math.ceil(requests / 5));
        for (let at = 0; at < requests; at++) {
          const tokens = defaultTokens({ ...choice, availableMicros: left, askedMicros: 0n });
          expect(tokens).toBeGreaterThanOrEqual(Math.min(choice.typicalTokens, choice.mostTokens));
          left -= choice.costOf(tokens);
        }
        expect(left).toBeGreaterThanOrEqual(0n);
      }),
      propertyRuns(200),
    );
  });
});

test('the affordable length is the longest that the credit covers', () => {
  fc.assert(
    fc.property(choices, ({ availableMicros, mostTokens, costOf }) => {
      const tokens = affordableTokens(availableMicros, mostTokens, costOf);
      expect(tokens === 0 || costOf(tokens) <= availableMicros).toBe(true);
      expect(tokens === mostTokens || costOf(tokens + 1) > availableMicros).toBe(true);
    }),
    propertyRuns(300),
  );
});
