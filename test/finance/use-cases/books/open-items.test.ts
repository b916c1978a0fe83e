import fc from 'fast-check';
import { expect, test } from 'vitest';
import { addPostings, projectNext } from '../../../../src/audit/use-cases/projections/project.ts';
import { checkReadModels } from '../../../../src/audit/use-cases/verify/rows/check-rows.ts';
import { ageExport, ageLedger } from '../../../../src/finance/use-cases/books/age-books.ts';
import { openFileSource } from '../../../../src/finance/use-cases/books/source.ts';
import { anyBooks } from '../../../audit/rules/bookkeeping/any-books.ts';
import { createDatabase, type TestDatabase } from '../../../support/database.ts';
import { allEvents } from '../../../support/invariants.ts';
import { appendAll } from '../../../support/log.ts';
import { tollbook } from '../../../support/program.ts';
import { propertyRuns } from '../../../support/property-runs.ts';
import { paidJob, type StreamEvent, transferOf } from '../../../support/synthetic-ledger.ts';
import { customer } from '../../../support/synthetic-people.ts';
import { projectAll } from '../../../audit/use-cases/projections/stored-postings.ts';
import { exportFile } from './support.ts';

const currency = 'EUR';

/** So much that completions never use more credit than there is. */
const grants = ['700', '1000000000'].map((amount): StreamEvent => ({
  stream: 'account:7',
  event: { type: 'credit_granted', data: { account_id: 7, amount_micros: amount } },
}));

/** The moments at which the ledger changed, and one after the last. */
async function moments({ db }: TestDatabase): Promise<number[]> {
  const times = new Set((await allEvents(db)).map(({ at }) => Date.parse(at)));
  return [...times, Math.max(...times) + 1];
}

test('the open items of the read models at any moment are those of a fold over all events until then, for any legal ledger and any length of steps', async () => {
  await fc.assert(
    fc.asyncProperty(anyBooks, fc.integer({ min: 1, max: 40 }), async (history, step) => {
      const database = await createDatabase();
      await appendAll(database, grants);
      // four moments, so that an item may end at another one than it began
      const part = Math.ceil(history.length / 4);
      for (let n = 0; n < 4; n++) {
        await database.moveClock(n * 60);
        await appendAll(database, history.slice(n * part, (n + 1) * part));
        while ((await projectNext(database.pool, step)) > 0);
      }
      const file = exportFile(await allEvents(database.db));
      let items = 0;
      for (const asOfMs of await moments(database)) {
        const folded = await ageExport(openFileSource(file, Date.now(), asOfMs), asOfMs, { currency });
        expect(await ageLedger(database.pool, asOfMs, { currency })).toEqual(folded);
        items += folded.rows.length;
      }
      expect(items).toBeGreaterThan(0);
      expect(await checkReadModels(database.pool)).toEqual([]);
    }),
    propertyRuns(4),
  );
});

const changes: readonly [what: string, sql: string, words: RegExp][] = [
  [
    'amount',
    `update tollbook.open_item set lots = '[["2026-01-01T00:00:00.000Z","1"]]' where opened = 4`,
    /lots is/,
  ],
  [
    'beginning',
    'update tollbook.open_item set opened = 5 where opened = 4',
    /is missing|belongs to no event/,
  ],
  ['end', 'update tollbook.open_item set closed = 5 where opened = 4', /closed is 5, by the events 7/],
  [
    'open end',
    'update tollbook.open_item set closed = null where opened = 4',
    /is missing|belongs to no event|closed/,
  ],
  ['name', `update tollbook.open_item set name = 'x' where opened = 4`, /name is/],
  [
    'counterparty',
    `update tollbook.open_item set counterparty = 'x' where opened = 4`,
    /counterparty is "x"/,
  ],
  ['removed item', 'delete from tollbook.open_item where opened = 4', /is missing/],
  ['removed open item', 'delete from tollbook.open_item where closed is null', /is missing/],
  [
    'invented item',
    `insert into tollbook.open_item select generation, account, 5000, null, commodity, name || 'y', counterparty, lots, taken
      from tollbook.open_item where opened = 4`,
    /belongs to no event/,
  ],
];

test('verify names every change of an open item, and a rebuild the items that differ', async () => {
  const database = await createDatabase();
  await appendAll(database, [...paidJob(1), ...customer(0), transferOf(1)]);
  await projectAll(database);
  expect(await checkReadModels(database.pool)).toEqual([]);
  await database.asOwner((owner) => owner.query('create table kept as select * from tollbook.open_item'));
  for (const [what, sql, words] of changes) {
    await database.asOwner((owner) => owner.query(sql));
    const found = (await checkReadModels(database.pool)).map((row) => `${row.table}: ${row.words}`);
    expect([what, found[0]]).toEqual([what, expect.stringMatching(/^open_item: /)]);
    expect(found.join('\n')).toMatch(words);
    await database.asOwner(async (owner) => {
      await owner.query('delete from tollbook.open_item');
      await owner.query('insert into tollbook.open_item select * from kept');
    });
  }
  await database.asOwner((owner) =>
    owner.query(`update tollbook.open_item set counterparty = 'x' where opened = 4`),
  );
  const run = await tollbook(['projections', 'rebuild'], { DATABASE_URL: database.url });
  expect(run.code).toBe(1);
  expect(run.stderr).toMatch(/^only before: open_item .*"counterparty":"x"/m);
  expect(run.stderr).toMatch(/^only now: open_item /m);
});

test('a gateway of an earlier version, which gives no open items, moves the read models, and their items are built anew', async () => {
  const database = await createDatabase();
  await appendAll(database, paidJob(1));
  await projectAll(database);
  await appendAll(database, paidJob(2).slice(0, 5));
  const books = { accounts: [], postings: [], commodities: [], payees: [], credit: [] };
  await database.pool.query(`select tollbook.apply_projection(1, 7, 12, '[]', '[]', '[]', '[]', '[]', $1)`, [
    books,
  ]);
  const [, moment = 0] = (await moments(database)).slice(-2);
  await expect(ageLedger(database.pool, moment)).rejects.toThrow('have no open items yet');
  await addPostings(database.pool, 50)();
  expect((await ageLedger(database.pool, moment)).rows).toMatchObject([
    { kind: 'undelivered', atoms: 3_000n },
  ]);
  expect(await checkReadModels(database.pool)).toEqual([]);
});

test('tollbook aging of a database says what is open now, and at a past moment, with the names of accounts', async () => {
  const database = await createDatabase();
  await appendAll(database, [...paidJob(1).slice(0, 5), ...customer(0), transferOf(1)]);
  const env = { DATABASE_URL: database.url };
  const now = await tollbook(['aging', '--format', 'json', '--currency', 'USD'], env);
  expect(now).toMatchObject({ code: 0, stderr: '' });
  const { items } = JSON.parse(now.stdout) as { items: { kind: string; name: string }[] };
  expect(items.map(({ kind }) => kind)).toContain('undelivered');
  expect(items.map(({ kind }) => kind)).toContain('suspense');
  const before = await tollbook(['aging', '--as-of', '2026-01', '--format', 'json'], env);
  expect(JSON.parse(before.stdout)).toMatchObject({ items: [] });
});
