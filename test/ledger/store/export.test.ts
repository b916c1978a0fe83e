import { expect, test } from 'vitest';
import { readPassedMoment } from '../../../src/ledger/store/export.ts';
import { createDatabase } from '../../support/database.ts';

test('no moment has passed while an append that may have read the clock before it is not committed', async () => {
  const { pool, asOwner } = await createDatabase();
  await asOwner(async (owner) => {
    await owner.query('begin');
    await owner.query('select at from tollbook.lane for update');
    const { rows } = await owner.query<{ ms: number }>(
      'select extract(epoch from tollbook.clock())::float8 * 1000 as ms',
    );
    let hasPassed = false;
    const moment = readPassedMoment(pool).then((ms) => {
      hasPassed = true;
      return ms;
    });
    for (let i = 0; i < 20; i++) await pool.query('select 1');
    expect(hasPassed).toBe(false);
    await owner.query('commit');
    expect(await moment).toBeGreaterThanOrEqual(Math.floor(rows[0]!.ms));
  });
});
