import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { createDatabase } from '../../support/database.ts';

test('a snapshot that stays open does not make appends read more, however many there are', async () => {
  const { url, asOwner } = await createDatabase();
  const dump = new pg.Client(url);
  await dump.connect();
  onTestFinished(() => dump.end());
  await asOwner(async (owner) => {
    const flusher = randomUUID();
    const ways = {
      decided: (n: string) =>
        `tollbook.append(1::smallint, '${flusher}', ${n}, ${n} - 1,
          format('[{"stream": "s%s", "events": [{"type": "quote_issued", "data": {}}]}]', ${n})::json)`,
      written: (n: string) =>
        `tollbook.append_uncontended(1::smallint, '${flusher}', ${n}, ${n} - 1, int8send(${n}), 'quote_issued', '{}',
          format('s%s', ${n}), '0', '', '', '', '', '', '')`,
    };
    type Way = (typeof ways)['written'];
    const some = (one: Way, from: number, to: number) =>
      owner.query(`do $$ begin for n in ${from}..${to} loop perform ${one('n')}; commit; end loop; end $$`);
    // The fewest of five: a call whose catalogue entries autovacuum has just invalidated reads the catalogue as well.
    const pages = async (one: Way, from: number) => {
      const read: number[] = [];
      for (let n = from; n < from + 5; n += 1) {
        const { rows } = await owner.query<{ 'QUERY PLAN': [{ Plan: { 'Shared Hit Blocks': number } }] }>(
          `explain (analyze, buffers, format json) select ${one(String(n))}`,
        );
        read.push(rows[0]?.['QUERY PLAN'][0].Plan['Shared Hit Blocks'] ?? 0);
      }
      return Math.min(...read);
    };
    await some(ways.decided, 1, 50);
    await some(ways.written, 51, 100);
    const before = [await pages(ways.decided, 101), await pages(ways.written, 106)];
    await dump.query('begin isolation level repeatable read; select from tollbook.lane');
    await some(ways.decided, 111, 350);
    await some(ways.written, 351, 600);
    const after = [await pages(ways.decided, 601), await pages(ways.written, 606)];
    for (const [way, read] of after.entries()) expect(read).toBeLessThan((before[way] ?? 0) + 20);
  });
});
