import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  costMicros,
  creditText,
  type ModelPrice,
  parseCredit,
  parsePrice,
  priceText,
  upperBoundMicros,
} from '../../../src/base/values/price.ts';

const anyNanos = fc.bigInt({ min: 1n, max: 10n ** 15n - 1n });
const anyPrice: fc.Arbitrary<ModelPrice> = fc.record(
  {
    inputNanosPerMillion: anyNanos,
    outputNanosPerMillion: anyNanos,
    cachedInputNanosPerMillion: anyNanos,
    cacheWriteNanosPerMillion: anyNanos,
  },
  { requiredKeys: ['inputNanosPerMillion', 'outputNanosPerMillion'] },
);
const anyTokens = fc.oneof(fc.nat(100_000), fc.maxSafeNat());

function priceOf(input: string, output: string): ModelPrice {
  const [inputNanosPerMillion, outputNanosPerMillion] = [parsePrice(input), parsePrice(output)];
  if (inputNanosPerMillion === undefined || outputNanosPerMillion === undefined) throw new Error('no price');
  return { inputNanosPerMillion, outputNanosPerMillion };
}

describe('the cost of a completion', () => {
  test.each([
    ['a million tokens each way', 1_000_000, 1_000_000, priceOf('2.50', '10'), 12_500_000n],
    ['one token at 2.50', 1, 0, priceOf('2.50', '10'), 3n],
    ['two tokens at 2.50, exactly', 2, 0, priceOf('2.50', '10'), 5n],
    ['one token each way, rounded once', 1, 1, priceOf('0.5', '0.5'), 1n],
    ['one token at the lowest price', 0, 1, priceOf('0.000000001', '0.000000001'), 1n],
    ['no token', 0, 0, priceOf('2.50', '10'), 0n],
    [
      'more than any float keeps',
      Number.MAX_SAFE_INTEGER,
      0,
      priceOf('1.000000001', '1'),
      9_007_199_263_748_191n,
    ],
  ] satisfies [string, number, number, ModelPrice, bigint][])(
    'of %s',
    (_, promptTokens, completionTokens, price, micros) => {
      expect(costMicros({ promptTokens, completionTokens, price })).toBe(micros);
    },
  );

  test('is the exact cost, rounded up by less than one micro', () => {
    fc.assert(
      fc.property(anyTokens, anyTokens, anyPrice, (promptTokens, completionTokens, price) => {
        const scaled = costMicros({ promptTokens, completionTokens, price }) * 10n ** 9n;
        const exact =
          BigInt(promptTokens) * price.inputNanosPerMillion +
          BigInt(completionTokens) * price.outputNanosPerMillion;
        expect(scaled).toBeGreaterThanOrEqual(exact);
        expect(scaled - exact).toBeLessThan(10n ** 9n);
      }),
    );
  });

  test('has the prices of what is read from a cache and written to it, exactly, where they are given', () => {
    const price = {
      ...priceOf('2.50', '10'),
      cachedInputNanosPerMillion: 1_250_000_000n,
      cacheWriteNanosPerMillion: 3_125_000_000n,
    };
    const used = { promptTokens: 1_000_000, completionTokens: 0 };
    expect(costMicros({ ...used, price })).toBe(2_500_000n);
    expect(costMicros({ ...used, cachedTokens: 800_000, price })).toBe(1_500_000n);
    expect(costMicros({ ...used, cachedTokens: 800_000, cacheWriteTokens: 200_000, price })).toBe(1_625_000n);
    expect(costMicros({ ...used, cachedTokens: 800_000, price: priceOf('2.50', '10') })).toBe(2_500_000n);
    expect(() => costMicros({ ...used, cachedTokens: 1_000_001, price })).toThrow(RangeError);
  });

  test('is above zero for any token, and never negative', () => {
    fc.assert(
      fc.property(anyTokens, anyTokens, anyPrice, (promptTokens, completionTokens, price) => {
        const micros = costMicros({ promptTokens, completionTokens, price });
        expect(micros > 0n).toBe(promptTokens + completionTokens > 0);
        expect(micros).toBeGreaterThanOrEqual(0n);
      }),
    );
  });

  test('is at most the bound whenever the usage is within it', () => {
    const anyShare = fc.double({ min: 0, max: 1, noNaN: true });
    const anyAsked = fc.record({
      promptTokensBound: fc.nat(2 ** 40),
      maxTokens: fc.nat(2 ** 40),
      n: fc.integer({ min: 1, max: 128 }),
      price: anyPrice,
    });
    fc.assert(
      fc.property(anyAsked, fc.tuple(anyShare, anyShare, anyShare, anyShare), (asked, shares) => {
        const [ofPrompt, ofCompletion, ofCached, ofWritten] = shares;
        const promptTokens = Math.floor(asked.promptTokensBound * ofPrompt);
        const completionTokens = Math.floor(asked.maxTokens * asked.n * ofCompletion);
        const cachedTokens = Math.floor(promptTokens * ofCached);
        const cacheWriteTokens = Math.floor((promptTokens - cachedTokens) * ofWritten);
        const tokens = { promptTokens, completionTokens, cachedTokens, cacheWriteTokens };
        const cost = costMicros({ ...tokens, price: asked.price });
        expect(cost).toBeLessThanOrEqual(upperBoundMicros(asked));
      }),
    );
  });

  test('reaches the bound with every token used', () => {
    fc.assert(
      fc.property(fc.nat(), fc.nat(), anyPrice, (promptTokens, maxTokens, price) => {
        const bound = upperBoundMicros({ promptTokensBound: promptTokens, maxTokens, n: 3, price });
        const costs = [{}, { cachedTokens: promptTokens }, { cacheWriteTokens: promptTokens }].map((cache) =>
          costMicros({ promptTokens, ...cache, completionTokens: 3 * maxTokens, price }),
        );
        expect(costs).toContain(bound);
        expect(costs.filter((cost) => cost > bound)).toEqual([]);
      }),
    );
  });

  test('has no bound that overflows', () => {
    const most = Number.MAX_SAFE_INTEGER;
    expect(
      upperBoundMicros({ promptTokensBound: most, maxTokens: most, n: 128, price: priceOf('1', '1') }),
    ).toBe(BigInt(most) * 129n);
  });

  test.each([-1, 0.5, Number.NaN, Infinity, 2 ** 53])('throws a RangeError for %d tokens', (tokens) => {
    const price = priceOf('1', '1');
    expect(() => costMicros({ promptTokens: tokens, completionTokens: 0, price })).toThrow(RangeError);
    expect(() => upperBoundMicros({ promptTokensBound: 0, maxTokens: tokens, n: 1, price })).toThrow(
      RangeError,
    );
  });

  test('throws a RangeError for a price of 0', () => {
    const price = { inputNanosPerMillion: 0n, outputNanosPerMillion: 1n };
    expect(() => costMicros({ promptTokens: 1, completionTokens: 0, price })).toThrow(RangeError);
  });
});

describe('a price', () => {
  test.each([
    ['2.50', 2_500_000_000n, '2.5'],
    ['3', 3_000_000_000n, '3'],
    ['0.000000001', 1n, '0.000000001'],
    ['999999.999999999', 999_999_999_999_999n, '999999.999999999'],
    ['100', 100_000_000_000n, '100'],
  ])('of %s is %d nanos for a million tokens, and is shown as %s', (text, nanos, shown) => {
    expect(parsePrice(text)).toBe(nanos);
    expect(priceText(nanos)).toBe(shown);
  });

  test.each([
    '',
    '0',
    '0.00',
    '-1',
    '+1',
    '1.',
    '.5',
    '01',
    '1e3',
    '1000000',
    '0.0000000001',
    '1,5',
    ' 1',
    '١',
  ])('is not read from %j', (text) => {
    expect(parsePrice(text)).toBeUndefined();
  });

  test('is read back from what is shown', () => {
    fc.assert(
      fc.property(anyNanos, (nanos) => {
        expect(parsePrice(priceText(nanos))).toBe(nanos);
      }),
    );
  });
});

describe('a credit', () => {
  test.each([
    [0n, '0'],
    [1n, '0.000001'],
    [250_000n, '0.25'],
    [10_000_000n, '10'],
  ])('of %d micros is shown as %s', (micros, text) => {
    expect(creditText(micros)).toBe(text);
  });

  test.each([
    ['5.00', 5_000_000n],
    ['0.000001', 1n],
    ['0', 0n],
    ['999999999.999999', 999_999_999_999_999n],
  ])('of %s is %d micros', (text, micros) => {
    expect(parseCredit(text)).toBe(micros);
  });

  test.each(['', '-1', '+1', '1.', '.5', '01', '1e3', '1000000000', '0.0000001', '1,5', '5 ', '5\n', '١'])(
    'is not read from %j',
    (text) => {
      expect(parseCredit(text)).toBeUndefined();
    },
  );

  test('is read back from what is shown', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 15n - 1n }), (micros) => {
        expect(parseCredit(creditText(micros))).toBe(micros);
      }),
    );
  });
});
