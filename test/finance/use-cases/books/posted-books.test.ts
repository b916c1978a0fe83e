import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Period } from '../../../../src/base/values/period.ts';
import { type BooksOptions, openBooks } from '../../../../src/finance/use-cases/books/books.ts';
import { writeBooks } from '../../../../src/finance/use-cases/books/format.ts';
import { type LedgerSource, openDatabaseSource } from '../../../../src/finance/use-cases/books/source.ts';
import { anyBooks } from '../../../audit/rules/bookkeeping/any-books.ts';
import { createDatabase, type TestDatabase } from '../../../support/database.ts';
import { allEvents } from '../../../support/invariants.ts';
import { appendAll } from '../../../support/log.ts';
import { propertyRuns } from '../../../support/property-runs.ts';
import type { StreamEvent } from '../../../support/synthetic-ledger.ts';
import { twoMonths } from './support.ts';

const startMs = Date.parse('2026-01-31T23:52:00Z');
const euros = { currency: 'EUR' };

/** A ledger whose clock moves on whenever it is read, so that its events are on both sides of the end of a month. */
async function ledgerOf(events: readonly StreamEvent[]): Promise<TestDatabase> {
  const database = await createDatabase();
  await database.asOwner((owner) =>
    owner.query(`create sequence tollbook.tick; grant usage on sequence tollbook.tick to public;
      create or replace function tollbook.clock() returns timestamptz language sql volatile
        as $$ select '${new Date(startMs).toISOString()}'::timestamptz + nextval('tollbook.tick') * interval '10 seconds' $$`),
  );
  await appendAll(database, events);
  return database;
}

/** The same ledger as a file has it: without postings. */
const asFile = (source: LedgerSource): LedgerSource => ({ ...source, pool: undefined });

async function partsOf(source: LedgerSource, period: Period, options: BooksOptions = euros) {
  const books = await openBooks(source, period, options);
  return { events: books.events, parts: await Array.fromAsync(books.parts()) };
}

describe('books from postings', () => {
  test('are part by part those of a bookkeeper who reads every event, for any legal ledger and any period', async () => {
    await fc.assert(
      fc.asyncProperty(
        anyBooks,
        fc.array(fc.tuple(fc.nat(99), fc.nat(99), fc.constantFrom(0, 1, 5_000)), { minLength: 4 }),
        async (history, draws) => {
          const database = await ledgerOf(history);
          const source = await openDatabaseSource(database.pool);
          const times = (await allEvents(database.db)).map(({ at }) => Date.parse(at));
          const at = (draw: number): number => times[draw % times.length] ?? 0;
          const periods = draws
            .map(([one, other, beyond]) => [at(one), at(other) + beyond])
            .map((ends) => ends.toSorted((a, b) => a - b))
            .concat([[0, source.nowMs]]);
          for (const [fromMs = 0, toMs = 0] of periods) {
            const period = { fromMs, toMs };
            expect(await partsOf(source, period)).toEqual(await partsOf(asFile(source), period));
          }
        },
      ),
      propertyRuns(15),
    );
  });

  test('are the same bytes in every format, month by month, with whatever comes late', async () => {
    const database = await ledgerOf(
      twoMonths().both.map(({ stream, type, data }) => ({ stream, event: { type, data } }) as StreamEvent),
    );
    const source = await openDatabaseSource(database.pool);
    const ends = [startMs, Date.parse('2026-02-01'), Date.parse('2026-02-01T00:02:05Z'), source.nowMs];
    for (const [i, toMs] of ends.entries()) {
      const period = { fromMs: ends[i - 1] ?? 0, toMs };
      for (const format of ['csv', 'hledger', 'beancount', 'summary', 'summary-page'] as const) {
        const [posted, folded] = await Promise.all(
          [source, asFile(source)].map(async (one) =>
            Buffer.concat(await Array.fromAsync(writeBooks(await openBooks(one, period), format))).toString(),
          ),
        );
        expect(posted).toBe(folded);
      }
    }
  });
});
