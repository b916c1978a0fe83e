import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { createDatabase } from '../support/database.ts';

test('a snapshot that stays open does not make appends read more, however many there are', async () => {
  const { url, asOwner } = await createDatabase();
  const dump = new pg.Client(url);
  await dump.connect();
  onTestFinished(() => dump.end());
  const pagesRead = await asOwner(async (owner) => {
    const flusher = randomUUID();
    const one = (n: string) =>
      `tollbook.append(1::smallint, '${flusher}', ${n}, ${n} - 1,
        format('[{"stream": "s%s", "events": [{"type": "quote_issued", "data": {}}]}]', ${n})::json)`;
    const some = (from: number, to: number) =>
      owner.query(`do $$ begin for n in ${from}..${to} loop perform ${one('n')}; commit; end loop; end $$`);
    const pages = async (n: number) => {
      const { rows } = await owner.query<{ 'QUERY PLAN': [{ Plan: { 'Shared Hit Blocks': number } }] }>(
        `explain (analyze, buffers, format json) select ${one(String(n))}`,
      );
      return rows[0]?.['QUERY PLAN'][0].Plan['Shared Hit Blocks'] ?? 0;
    };
    await some(1, 100);
    const before = await pages(101);
    await dump.query('begin isolation level repeatable read; select from tollbook.lane');
    await some(102, 600);
    return { before, after: await pages(601) };
  });
  expect(pagesRead.after).toBeLessThan(pagesRead.before + 20);
});
