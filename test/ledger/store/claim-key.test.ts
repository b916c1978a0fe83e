import fc from 'fast-check';
import { expect, test } from 'vitest';
import { claimKey, claimKeys, encodeClaim } from '../../../src/ledger/store/claim-key.ts';
import type { Claim } from '../../../src/ledger/store/lane-command.ts';

const name = fc.record({
  kind: fc.constantFrom<Claim['kind'][]>('payment', 'payment_id', 'transfer'),
  owner: fc.string(),
  scope: fc.string(),
  key: fc.string(),
});

test('claims have the same key only where kind, owner, scope, key and part are the same', () => {
  const claim = fc.record({ name, part: fc.option(fc.string(), { nil: undefined }) });
  fc.assert(
    fc.property(claim, claim, (one, other) => {
      const keys = [one, other].map(({ name: of, part }) =>
        claimKey({ ...of, ...(part === undefined ? {} : { part }) }).toString('hex'),
      );
      expect(keys[0] === keys[1]).toBe(JSON.stringify(one) === JSON.stringify(other));
    }),
  );
  const nonce = { kind: 'payment_id', owner: 'a', scope: 'b', key: 'c' } as const;
  const moved = { ...nonce, owner: 'ab', scope: '' };
  expect(claimKey(moved).equals(claimKey(nonce))).toBe(false);
});

test('one range has all parts of a name and no other claim', () => {
  fc.assert(
    fc.property(name, name, fc.string(), (one, other, part) => {
      const [lowest, highest] = claimKeys(one);
      const isIn = (key: Buffer) => key.compare(lowest) >= 0 && key.compare(highest) <= 0;
      expect(isIn(claimKey({ ...one, part }))).toBe(true);
      expect(claimKeys({ ...one, part })).toEqual([lowest, highest]);
      expect(isIn(claimKey({ ...other, part }))).toBe(JSON.stringify(one) === JSON.stringify(other));
    }),
  );
});

test('a claim is kept as the first half of a SHA-256, which never changes between releases', () => {
  const claim: Claim = { kind: 'transfer', owner: '', scope: '', key: '0x01', binding: 'b' };
  // printf '["transfer","","","0x01"]' | sha256sum; printf b | sha256sum; printf x | sha256sum
  expect(encodeClaim(claim)).toEqual({
    kind: 'transfer',
    key: '8573b35b65ff1aeacf33153f978bfd26',
    binding: '3e23e8160039594a33894f6564e1b134',
  });
  expect(claimKey({ ...claim, part: 'x' }).toString('hex')).toBe(
    '8573b35b65ff1aeacf33153f978bfd262d711642b726b044',
  );
});
