import { expect, test } from 'vitest';
import { addPostings, rebuildProjections } from '../../../../src/audit/use-cases/projections/project.ts';
import { checkReadModels } from '../../../../src/audit/use-cases/verify/rows/check-rows.ts';
import { readProjection } from '../../../../src/ledger/store/projection.ts';
import { createDatabase } from '../../../support/database.ts';
import { appendAll } from '../../../support/log.ts';
import { tollbook } from '../../../support/program.ts';
import { busyLedger, paidJob, type StreamEvent } from '../../../support/synthetic-ledger.ts';
import { customer } from '../../../support/synthetic-people.ts';
import {
  expectedPostings,
  projectAll,
  storedBalances,
  storedPostings,
  unreadable,
} from './stored-postings.ts';

test('a row of the balances has the sum of all days up to its own', async () => {
  const database = await createDatabase();
  await appendAll(database, paidJob(1));
  await projectAll(database);
  await database.asOwner((owner) =>
    owner.query(
      `insert into tollbook.balance_day select generation, account, commodity, day - 1, 5, 7 from tollbook.balance_day`,
    ),
  );
  const closings = (await storedBalances(database))
    .filter(({ account }) => account === 'Liabilities:Undelivered')
    .map(({ debits, credits, closing }) => [debits, credits, closing]);
  expect(closings).toEqual([
    ['5', '7', '-2'],
    ['2000', '2000', '-2'],
  ]);
});

const changes: readonly [what: string, sql: string, words: RegExp][] = [
  [
    'amount of a posting',
    `update tollbook.posting set atoms = atoms + 1 where seq = 4`,
    /^posting: seq 4, leg 1: atoms is "2001", by the events "2000"$/,
  ],
  [
    'account of a posting',
    `update tollbook.posting set debit = credit where seq = 4`,
    /^posting: seq 4, leg 1: debit is "Liabilities:Undelivered"/,
  ],
  [
    'category of a posting',
    `update tollbook.posting set category = 'refund' where seq = 4`,
    /^posting: seq 4, leg 1: category/,
  ],
  [
    'place of a posting',
    `update tollbook.posting set seq = 5 where seq = 4`,
    /^posting: the row of seq 4, leg 1/,
  ],
  [
    'removed posting',
    `delete from tollbook.posting where seq = 4`,
    /^posting: the row of seq 4, leg 1 is missing$/,
  ],
  [
    'invented posting',
    `insert into tollbook.posting select generation, debit, 5, credit, commodity, leg, category, atoms, quote from tollbook.posting where seq = 4`,
    /^posting: the row of seq 5, leg 1 belongs to no event$/,
  ],
  [
    'posting after the last event',
    `insert into tollbook.posting select generation, debit, 5000, credit, commodity, leg, category, atoms, quote from tollbook.posting where seq = 4`,
    /^posting: the row of seq 5000, leg 1 belongs to no event$/,
  ],
  [
    'posting before the first event',
    `insert into tollbook.posting select generation, debit, -5, credit, commodity, leg, category, atoms, quote from tollbook.posting where seq = 4`,
    /^posting: the row of seq -5, leg 1 belongs to no event$/,
  ],
  [
    'name of an account',
    `update tollbook.book_account set name = 'Assets:Elsewhere' where id = 1`,
    /^posting: seq 4, leg 1: debit is "Assets:Elsewhere"/,
  ],
  [
    'invented account',
    `insert into tollbook.book_account select generation, 99, 'Assets:Elsewhere' from tollbook.projection`,
    /^book_account: the row of name Assets:Elsewhere, id 99 belongs to no event$/,
  ],
  [
    'balance of a day',
    `update tollbook.balance_day set debits = debits + 1 where account = 1`,
    /^balance_day: day .*: debits is 3001, by the events 3000$/,
  ],
  [
    'removed balance',
    `delete from tollbook.balance_day where account = 1`,
    /^balance_day: the row of .* is missing$/,
  ],
  [
    'invented balance',
    `insert into tollbook.balance_day select generation, account, commodity, day - 1, 0, 0 from tollbook.balance_day where account = 1`,
    /^balance_day: the row of .* belongs to no event$/,
  ],
  [
    'decimals of a commodity',
    `update tollbook.book_commodity set decimals = 2 where id = 1`,
    /^book_commodity: .*decimals is 2, by the events 6$/,
  ],
  [
    'currency of credit',
    `update tollbook.book_commodity set name = 'JPY' where id = 0`,
    /^book_commodity: .*name is "JPY", by the events "CREDIT"$/,
  ],
  [
    'first event of a payee',
    `update tollbook.book_payee set since = 999`,
    /^book_payee: .*since is 999, by the events 3$/,
  ],
  [
    'invented payee',
    `insert into tollbook.book_payee select generation, network, '0x00', since from tollbook.book_payee`,
    /^book_payee: the row of .* belongs to no event$/,
  ],
  [
    'parts of credit',
    `update tollbook.book_credit set granted = granted + 1, bought = bought - 1`,
    /^book_credit: account_id 1: granted is \d+, by the events \d+/,
  ],
];

test('verify names every change of a posting, of a balance, and of what the next step begins with', async () => {
  const database = await createDatabase();
  await appendAll(database, [...paidJob(1), ...customer(0)]);
  await projectAll(database);
  expect(await checkReadModels(database.pool)).toEqual([]);
  const tables = ['posting', 'balance_day', 'book_account', 'book_commodity', 'book_payee', 'book_credit'];
  await database.asOwner(async (owner) => {
    for (const table of tables)
      await owner.query(`create table kept_${table} as select * from tollbook.${table}`);
  });
  for (const [what, sql, words] of changes) {
    await database.asOwner((owner) => owner.query(sql));
    const [first] = await checkReadModels(database.pool);
    expect([what, `${first?.table}: ${first?.words}`]).toEqual([what, expect.stringMatching(words)]);
    await database.asOwner(async (owner) => {
      for (const table of tables) {
        await owner.query(`delete from tollbook.${table}`);
        await owner.query(`insert into tollbook.${table} select * from kept_${table}`);
      }
    });
  }
  expect(await checkReadModels(database.pool)).toEqual([]);
});

test('a rebuild names the postings and balances that differ from the former ones, and exits with 1', async () => {
  const database = await createDatabase();
  await appendAll(database, busyLedger().take(57).toArray());
  await projectAll(database);
  await database.asOwner(async (owner) => {
    await owner.query(
      `update tollbook.posting set atoms = 7 where seq = (select min(seq) from tollbook.posting)`,
    );
    await owner.query(`update tollbook.balance_day set credits = 9 where account = 1`);
  });
  const run = await tollbook(['projections', 'rebuild'], { DATABASE_URL: database.url });
  expect(run.code).toBe(1);
  const [, ...differences] = run.stderr.trim().split('\n').slice(-5);
  expect(run.stderr).toContain('The former postings, balances or open items were not those of the events');
  expect(differences.map((line) => line.slice(0, 23))).toEqual([
    'only before: posting {"',
    'only now: posting {"seq',
    'only before: balance_da',
    'only now: balance_day {',
  ]);
  expect(await checkReadModels(database.pool)).toEqual([]);
  expect(await tollbook(['projections', 'rebuild'], { DATABASE_URL: database.url })).toMatchObject({
    code: 0,
  });
});

test('an event that contradicts those before it stops nothing: it has no postings, and the operator gets an alert', async () => {
  const database = await createDatabase();
  const [first, second] = [paidJob(1), paidJob(2)];
  const stray: StreamEvent = {
    stream: 'account:1',
    event: {
      type: 'credit_reversed',
      data: {
        account_id: 1,
        amount_micros: '1',
        missing_micros: '0',
        call_id: 77,
        quote_digest: first[0]!.stream,
      },
    },
  };
  await appendAll(database, [...first, stray, ...second]);
  for (const step of [1, 100]) {
    await projectAll(database, step);
    expect(await unreadable(database)).toEqual([8]);
    const { rows } = await database.pool.query('select seq::int from tollbook.posting order by seq, leg');
    expect(rows.map(({ seq }: { seq: number }) => seq)).toEqual([4, 7, 12, 15]);
    await rebuildProjections(database.pool, step, () => {});
  }
});

test('read models of an earlier version get their postings step by step, while its gateways keep them up', async () => {
  const database = await createDatabase();
  await appendAll(database, busyLedger().take(114).toArray());
  await database.asOwner((owner) => owner.query('update tollbook.projection set has_postings = false'));
  await projectAll(database);
  expect(await storedPostings(database)).toEqual([]);
  expect(await checkReadModels(database.pool)).toEqual([]);
  const [one, other] = [addPostings(database.pool, 50), addPostings(database.pool, 50)];
  expect(await one()).toBe(true);
  // another process does not begin as well
  expect(await other()).toBe(false);
  await appendAll(database, paidJob(900));
  while (await one());
  while (!(await readProjection(database.pool)).hasPostings) {
    await projectAll(database);
    await one();
  }
  expect([await one(), await other()]).toEqual([false, false]);
  await projectAll(database);
  expect(await storedPostings(database)).toEqual(await expectedPostings(database, 'CREDIT'));
  expect(await checkReadModels(database.pool)).toEqual([]);
  const { rows } = await database.pool.query('select generation from tollbook.projection');
  expect(rows).toEqual([{ generation: 2 }]);
});

test('a gateway of an earlier version, which gives no postings, moves the read models, and their postings are built anew', async () => {
  const database = await createDatabase();
  await appendAll(database, paidJob(1));
  await projectAll(database);
  await appendAll(database, paidJob(2));
  const { rows } = await database.pool.query(
    `select tollbook.apply_projection(1, 7, 14, '[]', '[]', '[]', '[]', '[]') as moved`,
  );
  expect(rows).toEqual([{ moved: true }]);
  expect(await storedPostings(database)).toEqual([]);
  const add = addPostings(database.pool, 50);
  await add();
  expect(await storedPostings(database)).toEqual(await expectedPostings(database, 'CREDIT'));
  expect(await checkReadModels(database.pool)).toEqual([]);
});
