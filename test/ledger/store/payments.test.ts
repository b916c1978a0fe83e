import type pg from 'pg';
import { expect, test } from 'vitest';
import { listPayments } from '../../../src/ledger/store/payments.ts';
import { createDatabase } from '../../support/database.ts';

/** Enough for a plan that reads all of them to be the dearer one. */
const payments = 20_000;

test('the payments of a period are found without reading all earlier payments', async () => {
  const database = await createDatabase();
  await database.asOwner(async (owner) => {
    await owner.query(
      `insert into tollbook.payment (generation, seq, at, service_id, job_index, network, asset, symbol,
         decimals, amount, payer, pay_to, state, settled_at, last_seq)
       select 1, n * 7, '2026-11-01Z'::timestamptz + n * interval '1 minute', 1, 1, 'eip155:1', '\\xaa', 'USDC',
         6, 1, '\\xbb', '\\xcc', 'completed', now(), n * 7
       from generate_series(1, ${payments}) n`,
    );
    await owner.query('analyze tollbook.payment');
    const plans: string[] = [];
    const client = {
      async query(text: string, values: unknown[]) {
        const { rows } = await owner.query<Record<string, string>>(`explain (analyze) ${text}`, values);
        plans.push(rows.map((row) => row['QUERY PLAN']).join('\n'));
        return { rows: [] };
      },
      release() {},
    };
    const explained = { connect: async () => client } as unknown as pg.Pool;
    const days = { from: new Date('2026-11-12T00:00:00Z'), to: new Date('2026-11-14T00:00:00Z') };
    await listPayments(explained, days, 0, 100);
    expect(plans).toHaveLength(1);
    expect(plans.join('\n')).not.toContain('Rows Removed by Filter');
    const { rows } = await listPayments(database.pool, days, 0, 5_000);
    expect([rows.length, rows[0]?.at, rows.at(-1)?.at]).toEqual([
      2_880,
      '2026-11-12T00:00:00.000Z',
      '2026-11-13T23:59:00.000Z',
    ]);
  });
});
