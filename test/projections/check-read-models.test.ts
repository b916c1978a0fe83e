import { expect, test } from 'vitest';
import { checkReadModels } from '../../src/projections/check-read-models.ts';
import { projectNext } from '../../src/projections/project.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { appendAll, testSigner } from '../support/log.ts';
import { tollbook } from '../support/program.ts';
import { busyLedger, paidJob, refundOf } from '../support/synthetic-ledger.ts';
import { customer } from '../support/synthetic-people.ts';

/** Paid jobs, one of which was refunded, and customers with credit and completions; all of it in the read models. */
async function projectedLedger(): Promise<TestDatabase> {
  const database = await createDatabase();
  const jobs = busyLedger().take(171).toArray();
  const refunded = paidJob(2_000);
  await appendAll(database, [...jobs, ...refunded, refundOf(refunded, 1), ...customer(1), ...customer(2)]);
  while ((await projectNext(database.pool, 50)) > 0);
  return database;
}

test('read models that nobody has changed are the fold of the events, while they follow the ledger and at its end', async () => {
  const database = await createDatabase();
  await appendAll(database, [...busyLedger().take(171).toArray(), ...customer(1), ...customer(2)]);
  expect(await checkReadModels(database.pool)).toEqual([]);
  while ((await projectNext(database.pool, 17)) > 0) expect(await checkReadModels(database.pool)).toEqual([]);
});

const tables = [
  'payment',
  'paid_call',
  'job_day',
  'payee',
  'account_credit',
  'usage_day',
  'completion',
] as const;

/** Another value of a column's type. */
const changes: Readonly<Record<string, string>> = {
  bigint: 'coalesce(COLUMN, 0) + 1000003',
  integer: 'coalesce(COLUMN, 0) + 1000003',
  numeric: 'coalesce(COLUMN, 0) + 1',
  text: `coalesce(COLUMN, '') || 'x'`,
  bytea: String.raw`coalesce(COLUMN, '') || '\x00'::bytea`,
  date: 'COLUMN + 1',
  uuid: 'gen_random_uuid()',
  'timestamp with time zone': `coalesce(COLUMN, now()) + interval '1 second'`,
};

test.each(tables)(
  'a row of %s that was changed in any column, removed or added by hand is named',
  async (table) => {
    const database = await projectedLedger();
    expect(await checkReadModels(database.pool)).toEqual([]);
    const unnoticed: string[] = [];
    await database.asOwner(async (owner) => {
      const { rows: columns } = await owner.query<{ name: string; type: string }>(
        `select column_name as name, data_type as type from information_schema.columns
          where table_schema = 'tollbook' and table_name = $1 order by 1`,
        [table],
      );
      await owner.query(`create temporary table kept as select * from tollbook.${table}`);
      const aRow = `ctid = (select ctid from tollbook.${table} order by random() limit 1)`;
      const tries = columns.map(({ name, type }) => {
        const value = changes[type]?.replaceAll('COLUMN', name);
        return [name, `update tollbook.${table} set ${name} = ${value} where ${aRow}`];
      });
      const key = { payment: 'seq', paid_call: 'call_id', completion: 'seq', account_credit: 'account_id' };
      const other = key[table as keyof typeof key] ?? (table === 'payee' ? 'pay_to' : 'day');
      const isText = other === 'pay_to';
      const copied = columns.map(({ name }) =>
        name === other ? (isText ? `${name} || 'x'` : `${name} + 10003`) : name,
      );
      tries.push(['(removed)', `delete from tollbook.${table} where ${aRow}`]);
      tries.push([
        '(added)',
        `insert into tollbook.${table} (${columns.map(({ name }) => name).join(', ')})
          select ${copied.join(', ')} from tollbook.${table} where ${aRow}`,
      ]);
      for (const [what = '', statement = ''] of tries) {
        expect((await owner.query(statement)).rowCount).toBe(1);
        const found = await checkReadModels(database.pool);
        if (!found.some((one) => one.table === table)) unnoticed.push(what);
        await owner.query(`truncate tollbook.${table}; insert into tollbook.${table} select * from kept`);
      }
    });
    expect(unnoticed).toEqual([]);
    expect(await checkReadModels(database.pool)).toEqual([]);
  },
);

test('tollbook verify names a payment whose read model sends its refund to somebody else, and ends with 1', async () => {
  const database = await projectedLedger();
  const args = ['verify', '--pubkey', testSigner.verifierKeys[0]];
  const sound = await tollbook(args, { DATABASE_URL: database.url });
  expect(sound).toMatchObject({ code: 0, stderr: '' });
  expect(sound.stdout).toContain('ok     every row of the read models is the fold of the events');
  await database.asOwner((owner) =>
    owner.query(String.raw`update tollbook.payment set payer = '\x${'66'.repeat(20)}' where seq = 17`),
  );
  const wrong = await tollbook(args, { DATABASE_URL: database.url });
  expect(wrong.code).toBe(1);
  expect(wrong.stdout).toMatch(/WRONG {2}read model payment: seq 17.*payer is .*6666.*, by the events/);
  expect(wrong.stdout).toContain('NOT SOUND');
});
