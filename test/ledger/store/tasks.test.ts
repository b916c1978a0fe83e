import { expect, test } from 'vitest';
import { beginRound, endRound, readTasks, type TaskName } from '../../../src/ledger/store/tasks.ts';
import { createDatabase } from '../../support/database.ts';
import { eventually } from '../../support/wait.ts';

const daySecs = 86_400;
const rate: TaskName = { kind: 'rate', queue: 'eip155:1/0xa5', key: 'aa' };

test('a process that waited while another one began a round does not begin it as well', async () => {
  const { pool, asOwner } = await createDatabase();
  expect(await beginRound(pool, rate, 0)).toMatchObject({ round: 1 });
  await asOwner(async (owner) => {
    await owner.query('begin; select from tollbook.task for update');
    const waiting = beginRound(pool, rate, 60_000);
    await eventually(async () => {
      const blocked = await owner.query(
        'select from pg_stat_activity where pg_backend_pid() = any (pg_blocking_pids(pid))',
      );
      expect(blocked.rowCount).toBe(1);
    });
    const begun = await owner.query('select round from tollbook.begin_round($1, $2, $3, 60000)', [
      rate.kind,
      rate.queue,
      rate.key,
    ]);
    expect(begun.rows).toEqual([{ round: 2 }]);
    await owner.query('commit');
    expect(await waiting).toBe(undefined);
  });
});

test('of processes that begin the first round of a task together, one begins it', async () => {
  const { pool } = await createDatabase();
  const begun = await Promise.all(Array.from({ length: 5 }, () => beginRound(pool, rate, 60_000)));
  expect(begun.filter(Boolean)).toEqual([expect.objectContaining({ round: 1, payload: {} })]);
});

test('the end of a round that another process has begun again changes nothing', async () => {
  const { pool } = await createDatabase();
  await beginRound(pool, rate, 0);
  await beginRound(pool, rate, 0);
  expect(await endRound(pool, rate, { round: 1, dueMs: 0, payload: { by: 'the first' } })).toBe(false);
  expect(await endRound(pool, rate, { round: 2, dueMs: 0, payload: { by: 'the second' }, error: 'e' })).toBe(
    true,
  );
  expect(await readTasks(pool, { kind: 'rate' })).toMatchObject([
    { queue: rate.queue, key: 'aa', payload: { by: 'the second' }, error: 'e' },
  ]);
});

test('a clock that goes back stops no task, and what a round found by the later time is not kept', async () => {
  const { pool, moveClock } = await createDatabase();
  await moveClock(3_600);
  await beginRound(pool, rate, 60_000);
  await moveClock(0);
  expect(await endRound(pool, rate, { round: 1, dueMs: 60_000, payload: { until: 'later' } })).toBe(false);
  expect(await beginRound(pool, rate, 60_000)).toMatchObject({ round: 2, payload: {} });
});

test('configurations that no gateway has had in force for a month leave the queue, and other queues keep theirs', async () => {
  const { pool, moveClock } = await createDatabase();
  const other = { ...rate, queue: 'eip155:1/0xb6' };
  for (const name of [rate, other]) await beginRound(pool, name, 0);
  const next = { ...rate, key: 'bb' };
  const keys = async () =>
    (await readTasks(pool, { kind: 'rate' })).map(({ queue, key }) => `${queue} ${key}`);
  for (const [days, left] of [
    [29, [`${rate.queue} aa`, `${rate.queue} bb`, `${other.queue} aa`]],
    [31, [`${rate.queue} bb`, `${other.queue} aa`]],
  ] as const) {
    await moveClock(days * daySecs);
    const { round = 0 } = (await beginRound(pool, next, 0)) ?? {};
    expect(await endRound(pool, next, { round, dueMs: 0, payload: {} })).toBe(true);
    expect((await keys()).toSorted()).toEqual(left);
  }
});
