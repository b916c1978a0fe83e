import { expect, test } from 'vitest';
import { takeFinalSettlements, takeFollowUps } from '../../../src/payments/store/follow-ups.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';

const network = 'eip155:1';

/** Two settlements to be confirmed: one in a block, one that is still searched for. */
async function withTwo(): Promise<TestDatabase> {
  const database = await createDatabase();
  await database.asOwner((owner) =>
    owner.query(
      `insert into tollbook.follow_up (seq, created_at, topic, network, block_number, due_at)
       select seq, tollbook.clock(), 'confirm', $1, block, tollbook.clock() from (values (1, null), (2, 7)) as f (seq, block)`,
      [network],
    ),
  );
  return database;
}

test('a follow-up that was taken is taken again after its pause, in each try, and never before', async () => {
  const database = await withTwo();
  const take = async () => {
    const searched = await takeFollowUps(database.pool, 'confirm', network, 10);
    const final = await takeFinalSettlements(database.pool, network, 7n, 10);
    return [...searched, ...final].map(({ seq }) => seq);
  };
  for (const ageSecs of [0, 60, 120]) {
    await database.moveClock(ageSecs);
    expect(await take()).toEqual([1, 2]);
    expect(await take()).toEqual([]);
  }
});

test('the first try of a follow-up adds an entry to no index', async () => {
  const database = await withTwo();
  const updates = await database.asOwner(async (owner) => {
    await owner.query('begin');
    await owner.query(`select tollbook.take_follow_ups('confirm', '${network}', 10)`);
    await owner.query(`select tollbook.take_final_settlements('${network}', 7, 10)`);
    const { rows } = await owner.query(
      `select pg_stat_get_xact_tuples_updated(oid)::int as all, pg_stat_get_xact_tuples_hot_updated(oid)::int as on_page
       from pg_class where oid = 'tollbook.follow_up'::regclass`,
    );
    await owner.query('commit');
    return rows[0];
  });
  expect(updates).toEqual({ all: 2, on_page: 2 });
});
