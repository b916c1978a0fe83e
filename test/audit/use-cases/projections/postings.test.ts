import fc from 'fast-check';
import { expect, test } from 'vitest';
import { projectNext, rebuildProjections } from '../../../../src/audit/use-cases/projections/project.ts';
import { checkReadModels } from '../../../../src/audit/use-cases/verify/rows/check-rows.ts';
import { anyBooks } from '../../rules/bookkeeping/any-books.ts';
import { createDatabase } from '../../../support/database.ts';
import { appendAll } from '../../../support/log.ts';
import { propertyRuns } from '../../../support/property-runs.ts';
import {
  expectedPostings,
  projectAll,
  storedBalances,
  storedPostings,
  unreadable,
} from './stored-postings.ts';

function sumsOf(postings: Awaited<ReturnType<typeof expectedPostings>>) {
  const sums = new Map<string, { debits: bigint; credits: bigint }>();
  for (const { at, debit, credit, commodity, atoms } of postings)
    for (const [account, side] of [
      [debit, 'debits'],
      [credit, 'credits'],
    ] as const) {
      const key = JSON.stringify([account, commodity, at.toISOString().slice(0, 10)]);
      const sum = sums.get(key) ?? { debits: 0n, credits: 0n };
      sum[side] += BigInt(atoms);
      sums.set(key, sum);
    }
  return Object.fromEntries([...sums].map(([key, { debits, credits }]) => [key, `${debits} ${credits}`]));
}

test('postings are the entries of the bookkeeper, and balances their sums, for any legal ledger and any length of steps, by two projectors at once, and rebuilt', async () => {
  await fc.assert(
    fc.asyncProperty(anyBooks, fc.integer({ min: 1, max: 40 }), async (history, step) => {
      const database = await createDatabase();
      const middle = Math.floor(history.length / 2);
      await appendAll(database, history.slice(0, middle));
      // a process that ends after each step
      while ((await projectNext(database.pool, step)) > 0);
      await appendAll(database, history.slice(middle));
      await Promise.all([projectAll(database, step), projectAll(database, step + 1)]);
      await projectAll(database);
      const postings = await expectedPostings(database, 'EUR');
      expect(await storedPostings(database)).toEqual(postings);
      const balances = await storedBalances(database);
      const sums = balances.map(({ account, commodity, day, debits, credits }: Record<string, string>) => [
        JSON.stringify([account, commodity, day]),
        `${debits} ${credits}`,
      ]);
      expect(Object.fromEntries(sums)).toEqual(sumsOf(postings));
      expect(await unreadable(database)).toEqual([]);
      expect(await checkReadModels(database.pool)).toEqual([]);
      const { differences } = await rebuildProjections(database.pool, step * 3, () => {});
      expect(differences).toEqual([]);
      expect(await storedPostings(database)).toEqual(postings);
      expect(await storedBalances(database)).toEqual(balances);
      const { rows } = await database.pool.query(
        `select distinct generation from (select generation from tollbook.posting union select generation from tollbook.balance_day
          union select generation from tollbook.book_account union select generation from tollbook.book_commodity
          union select generation from tollbook.book_payee union select generation from tollbook.book_credit) known`,
      );
      expect(rows).toEqual([{ generation: 2 }]);
    }),
    propertyRuns(2),
  );
});
