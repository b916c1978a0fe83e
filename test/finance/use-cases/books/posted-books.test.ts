import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Period } from '../../../../src/base/values/period.ts';
import {
  type BooksOptions,
  type BooksPart,
  openBooks,
} from '../../../../src/finance/use-cases/books/books.ts';
import { writeBooks } from '../../../../src/finance/use-cases/books/format.ts';
import { type LedgerSource, openDatabaseSource } from '../../../../src/finance/use-cases/books/source.ts';
import { anyBooks } from '../../../audit/rules/bookkeeping/any-books.ts';
import { paidQuote } from '../../../audit/rules/bookkeeping/support.ts';
import { rebuildProjections } from '../../../../src/audit/use-cases/projections/project.ts';
import { appendAll, appendRefusals } from '../../../support/log.ts';
import { allEvents } from '../../../support/invariants.ts';
import { propertyRuns } from '../../../support/property-runs.ts';
import { type StreamEvent, sweepOf } from '../../../support/synthetic-ledger.ts';
import { asFile, clockStartMs, ledgerOf } from './posted-ledger.ts';
import { twoMonths } from './support.ts';

const euros = { currency: 'EUR' };

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

  test('are the same bytes in every format of text, on both sides of the end of a month, with whatever comes late', async () => {
    const database = await ledgerOf(
      twoMonths().both.map(({ stream, type, data }) => ({ stream, event: { type, data } }) as StreamEvent),
    );
    const source = await openDatabaseSource(database.pool);
    const ends = [clockStartMs, Date.parse('2026-02-01'), Date.parse('2026-02-01T00:02:05Z'), source.nowMs];
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

  test('name the sweep that was recorded first where two have the same place on a chain, as after a reorg', async () => {
    const paid = paidQuote(1);
    paid.start();
    paid.settle('chain');
    const payment = paid.events as readonly StreamEvent[];
    const sweeps = [1, 2].map((n) => sweepOf(n, { block_number: '999999999', log_index: 4 }));
    for (const recorded of [sweeps, sweeps.toReversed()]) {
      const database = await ledgerOf([...payment, ...recorded]);
      // as a large ledger's would, the planner looks for the sweeps by the names of their streams
      await appendRefusals(database, 1_100);
      await database.asOwner((owner) => owner.query('analyze tollbook.event'));
      const source = await openDatabaseSource(database.pool);
      const period = { fromMs: clockStartMs, toMs: source.nowMs };
      const posted = await partsOf(source, period);
      const first = recorded[0]!.event.data as { readonly transaction: string };
      expect(posted.parts).toContainEqual(expect.objectContaining({ payoutBatch: `${first.transaction}:4` }));
      expect(posted).toEqual(await partsOf(asFile(source), period));
    }
  });

  test('are whole where another generation of the read models takes over while they are read', async () => {
    const { database, source, period } = await longLedger();
    const folded = await partsOf(asFile(source), period);
    const books = await openBooks(source, period, euros);
    const parts: BooksPart[] = [];
    for await (const part of books.parts()) {
      if (parts.length === 2) await rebuildProjections(database.pool, 1_000, () => undefined);
      parts.push(part);
    }
    expect(parts).toEqual(folded.parts);
  });

  test('are refused where read models have none yet, and of a period that is not over', async () => {
    const { database, source, period } = await longLedger();
    const later = { ...period, toMs: source.nowMs + 1 };
    await expect(openBooks(source, later)).rejects.toThrow(/not complete before it is over/);
    await database.asOwner((owner) => owner.query('update tollbook.projection set has_postings = false'));
    await expect(openBooks(source, period)).rejects.toThrow(/the read models have no postings yet/);
  });

  test.each([
    ['a posting is edited', 'update tollbook.posting set atoms = atoms + 1 where seq = $1', 'its postings'],
    ['a posting is removed', 'delete from tollbook.posting where seq = $1', 'its postings'],
    ['a posting is invented', 'update tollbook.posting set seq = seq + 1 where seq = $1', 'its postings'],
    [
      'an amount of credit is edited',
      `update tollbook.event set data = replace(data, '9000000', '8000000') where seq = $1`,
      'its postings',
    ],
    ['an event is removed', 'delete from tollbook.event where seq = $1', 'is missing'],
    ['an event cannot be read', `update tollbook.event set data = '{}' where seq = $1`, 'cannot be read'],
  ])('are refused where %s', async (_, statement, words) => {
    const { database, source, period } = await longLedger();
    await partsOf(source, period);
    const granted = (await allEvents(database.db)).find(({ type }) => type === 'credit_granted')?.seq;
    await database.asOwner(async (owner) => {
      await owner.query('set session_replication_role = replica');
      expect((await owner.query(statement, [granted])).rowCount).toBe(1);
    });
    await expect(partsOf(source, period)).rejects.toThrow(words);
  });
});

/** More events than are read at once, and the period of all of them. */
async function longLedger() {
  const { first, both } = twoMonths();
  const appends = both.map(({ stream, type, data }) => ({ stream, event: { type, data } }) as StreamEvent);
  const database = await ledgerOf(appends.slice(0, first.length));
  await appendRefusals(database, 1_100);
  await appendAll(database, appends.slice(first.length));
  const source = await openDatabaseSource(database.pool);
  return { database, source, period: { fromMs: clockStartMs, toMs: source.nowMs } };
}
