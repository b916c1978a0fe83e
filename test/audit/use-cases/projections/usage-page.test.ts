import { expect, test } from 'vitest';
import { listUsage, usageDimensions } from '../../../../src/chat/store/usage.ts';
import { projectNext } from '../../../../src/audit/use-cases/projections/project.ts';
import { createStreamMemory } from '../../../../src/audit/use-cases/projections/stream-memory.ts';
import { listCompletions } from '../../../../src/chat/store/completions.ts';
import { createDatabase } from '../../../support/database.ts';
import { fastestMs } from '../../../support/fastest.ts';
import { slowness } from '../../../support/processor.ts';
import { rareKeyId, rareModel, recordCompletions } from '../../../support/synthetic-completions.ts';

test('the first page of usage takes under 100 ms of a usual processor with a million completions', async () => {
  const database = await createDatabase();
  // a hundred days of ten models and forty keys, 25 completions each
  await database.asOwner((owner) =>
    owner.query(`insert into tollbook.usage_day
      select 1, 1, date '2026-01-01' + day, key, 25, 0, 1000, 500, 500, 0, 'model-' || model
      from generate_series(1, 100) day, generate_series(1, 40) key, generate_series(1, 10) model; analyze tollbook.usage_day`),
  );
  const filters = { accountId: 1, from: '2026-01-01', to: '2026-12-31' };
  const page = async () => {
    const { rows } = await listUsage(database.pool, filters, usageDimensions, undefined, 100);
    expect(rows).toHaveLength(100);
  };
  // what the customers' page asks for first
  const month = { ...filters, from: '2026-03-12', to: '2026-04-10' };
  const firstPage = async () => {
    for (const by of usageDimensions) await listUsage(database.pool, month, [by], undefined, 1_000);
  };
  const enoughMs = 100 * slowness;
  expect(await fastestMs(enoughMs, page)).toBeLessThan(enoughMs);
  expect(await fastestMs(enoughMs, firstPage)).toBeLessThan(enoughMs);
  const [total] = (await listUsage(database.pool, filters, ['key'], undefined, 100)).rows;
  expect(total?.requests).toBe('25000');
});

test('a list of completions by any filter is the newest of those that match, in pages that follow one another', async () => {
  const database = await createDatabase();
  const count = 10_010;
  await database.asOwner((owner) =>
    recordCompletions((statement, values) => owner.query(statement, [...values]), count),
  );
  const memory = createStreamMemory();
  while ((await projectNext(database.pool, 5_000, { memory })) > 0);
  const { rows: all } = await database.pool.query<{ seq: number; at: Date; model: string; key_id: number }>(
    'select seq, at, model, key_id from tollbook.completion order by seq desc',
  );
  expect(all).toHaveLength(count);
  const [from, to] = [all[7_500]?.at ?? new Date(), all[2_500]?.at ?? new Date()];
  for (const filters of [
    {},
    { model: 'model-3' },
    { keyId: 7 },
    { model: rareModel },
    { keyId: rareKeyId },
    { model: 'model-3', keyId: 7 },
    { model: rareModel, keyId: 1 },
    { from },
    { to },
    { from, to, model: 'model-3' },
    { model: 'none' },
  ]) {
    const wanted = all.filter(
      ({ model, key_id: keyId, at }) =>
        (!('model' in filters) || model === filters.model) &&
        (!('keyId' in filters) || keyId === filters.keyId) &&
        (!('from' in filters) || at >= filters.from) &&
        (!('to' in filters) || at < filters.to),
    );
    const seqs: number[] = [];
    for (let before: number | undefined; seqs.length < 150; before = seqs.at(-1)) {
      const { rows } = await listCompletions(database.pool, { accountId: 1, ...filters }, before, 50);
      seqs.push(...rows.map(({ seq }) => seq));
      if (rows.length < 50) break;
    }
    expect({ filters, seqs }).toEqual({ filters, seqs: wanted.slice(0, 150).map(({ seq }) => seq) });
  }
  // no list reads what it does not show, however much of that there is
  const readOnce = async () => {
    await database.pool.query('select pg_stat_force_next_flush()');
    const { rows } = await database.pool.query<{ read: number }>(
      `select (idx_tup_fetch + seq_tup_read)::int as read from pg_stat_user_tables
       where schemaname = 'tollbook' and relname = 'completion'`,
    );
    return rows[0]?.read ?? 0;
  };
  // as PostgreSQL does by itself for a table that grows
  await database.asOwner((owner) => owner.query('analyze tollbook.completion'));
  const before = await readOnce();
  for (const filters of [{ model: rareModel }, { keyId: rareKeyId }, { model: 'model-3', keyId: rareKeyId }])
    await listCompletions(database.pool, { accountId: 1, ...filters }, undefined, 50);
  expect((await readOnce()) - before).toBeLessThan(100);
  expect((await listCompletions(database.pool, { accountId: 2 }, undefined, 50)).rows).toEqual([]);
});
