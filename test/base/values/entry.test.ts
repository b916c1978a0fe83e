import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decimalText } from '../../../src/base/values/entry.ts';
import { propertyRuns } from '../../support/property-runs.ts';

test('amounts of any size are written as exact decimal text', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(2n ** 256n), max: 2n ** 256n }), fc.nat(36), (atoms, decimals) => {
      const text = decimalText(atoms, decimals);
      expect(text).toMatch(decimals === 0 ? /^-?\d+$/ : /^-?\d+\.\d+$/);
      expect(BigInt(text.replace('.', ''))).toBe(atoms);
    }),
    propertyRuns(),
  );
  expect([decimalText(5n, 6), decimalText(-1_500_000n, 6), decimalText(7n, 0)]).toEqual([
    '0.000005',
    '-1.500000',
    '7',
  ]);
});
