import fc from 'fast-check';
import { expect, test } from 'vitest';
import { HashedNumbers } from '../../../src/base/values/hashed-numbers.ts';
import { propertyRuns } from '../../support/property-runs.ts';

test('numbers by hashed texts are those of a map, also if they are set again and where they are many', () => {
  const changes = fc.array(fc.tuple(fc.nat(3_000), fc.nat()), { maxLength: 6_000, size: 'max' });
  fc.assert(
    fc.property(changes, (sets) => {
      const hashed = new HashedNumbers();
      const plain = new Map<string, number>();
      for (const [text, value] of sets) {
        hashed.set(String(text), value);
        plain.set(String(text), value);
      }
      for (let text = 0; text <= 3_000; text += 1)
        expect(hashed.get(String(text))).toBe(plain.get(String(text)) ?? 0);
    }),
    propertyRuns(5),
  );
});
