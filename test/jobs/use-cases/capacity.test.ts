import { expect, test } from 'vitest';
import { createUndecidedCounts } from '../../../src/jobs/use-cases/capacity.ts';
import type { LedgerDatabase } from '../../../src/ledger/store/database.ts';
import { createDatabase } from '../../support/database.ts';

const payer = `0x${'a1'.repeat(20)}` as const;
const other = `0x${'b2'.repeat(20)}` as const;

test("a payer's undecided payments are counted once a second, however many payments ask, and again after a failure", async () => {
  const { db } = await createDatabase();
  let counted = 0;
  let isBroken = false;
  const counting = new Proxy(db, {
    get(target, name) {
      if (name !== 'selectFrom') return Reflect.get(target, name) as unknown;
      return (...args: Parameters<LedgerDatabase['selectFrom']>) => {
        // the payments, and not the sum over them
        if (args[0] === ('tollbook.payment' as never)) counted++;
        if (isBroken) throw new Error('the database does not answer');
        return target.selectFrom(...args);
      };
    },
  });
  let nowMs = 0;
  const counts = createUndecidedCounts(counting, () => nowMs);
  expect(await Promise.all([1, 2, 3].map(() => counts.of(payer, 60)))).toEqual([0, 0, 0]);
  expect(counted).toBe(1);
  nowMs = 999;
  await counts.of(payer, 60);
  expect(counted).toBe(1);
  await counts.of(other, 60);
  expect(counted).toBe(2);
  nowMs = 1_000;
  isBroken = true;
  await expect(counts.of(payer, 60)).rejects.toThrow('does not answer');
  isBroken = false;
  expect(await counts.of(payer, 60)).toBe(0);
  expect(counted).toBe(4);
});
