import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  inverseRate,
  deviationText,
  isWithinBps,
  medianRate,
  parseRate,
  rateText,
} from '../../../src/base/values/rate.ts';

const anyRate = fc
  .record({ numerator: fc.bigInt({ min: 1n, max: 10n ** 60n }), scale: fc.nat(36) })
  .map(({ numerator, scale }) => ({ numerator, scale }));

test.each([
  ['0'],
  ['0.000'],
  ['-1'],
  ['+1'],
  ['1e3'],
  ['1E3'],
  ['NaN'],
  ['Infinity'],
  ['0x10'],
  ['01'],
  ['1.'],
  ['.5'],
  [' 1'],
  [''],
  [`0.${'1'.repeat(41)}`],
  [String(2n ** 256n)],
])('the rate %j is refused', (text) => {
  expect(parseRate(text)).toBe(undefined);
});

test('a rate of 40 decimals is exact, and so is the largest number of 256 bits', () => {
  const text = `3200.${'1'.repeat(40)}`;
  expect(rateText(parseRate(text)!)).toBe(text);
  const most = String(2n ** 256n - 1n);
  expect(rateText(parseRate(most)!)).toBe(most);
  expect(rateText({ numerator: 320_000n, scale: 2 })).toBe('3200');
});

test('a rate that is written and read again is the same', () => {
  fc.assert(
    fc.property(anyRate, (rate) => {
      const text = rateText(rate);
      expect(rateText(parseRate(text)!)).toBe(text);
    }),
  );
});

const median = (...texts: string[]) => rateText(medianRate(texts.map((text) => parseRate(text)!))!);

test('the median is the middle rate, or exactly between the two in the middle', () => {
  expect(median('3')).toBe('3');
  expect(median(`0.${'1'.repeat(40)}`)).toBe(`0.${'1'.repeat(40)}`);
  expect(median('1', '100', '3')).toBe('3');
  expect(median('1', '2')).toBe('1.5');
  expect(median('3200.1', '3200.02', '1', '9999')).toBe('3200.06');
});

test('the inverse is rounded up by less than one part in 10^36', () => {
  expect(rateText(inverseRate(parseRate('0.0003125')!)!)).toBe('3200');
  expect(rateText(inverseRate(parseRate('3')!)!)).toBe(`0.${'3'.repeat(35)}4`);
  expect(rateText(inverseRate(parseRate(`1${'0'.repeat(36)}`)!)!)).toBe(`0.${'0'.repeat(35)}1`);
});

test('an inverse that rounding would shorten below 13 digits is not a rate', () => {
  expect(inverseRate(parseRate(`3${'0'.repeat(23)}`)!)).toBeDefined();
  expect(inverseRate(parseRate(`3${'0'.repeat(24)}`)!)).toBe(undefined);
  expect(inverseRate(parseRate(`1${'0'.repeat(37)}`)!)).toBe(undefined);
});

test('a deviation of exactly the limit is allowed, and one above is not', () => {
  const [of, at, above] = ['3200', '3232', '3232.0000001'].map((text) => parseRate(text)!);
  expect(isWithinBps(at!, of!, 100)).toBe(true);
  expect(isWithinBps(above!, of!, 100)).toBe(false);
  expect(isWithinBps(of!, of!, 0)).toBe(true);
});

test.each([
  ['3200', '3200', '+0.0000 %'],
  ['3210', '3200', '+0.3125 %'],
  ['2880.0', '3200', '-10.0000 %'],
  ['0.5', '0.000001', '+49999900.0000 %'],
  ['0.000001', '0.5', '-99.9998 %'],
])('%s beside %s is %s', (rate, of, text) => {
  expect(deviationText(parseRate(rate)!, parseRate(of)!)).toBe(text);
});
