import type pg from 'pg';
import { expect, test } from 'vitest';
import { createPaymentLookup } from '../../src/store/payment-lookup.ts';
import { readRecentOffers } from '../../src/store/streams.ts';
import { createDatabase } from '../support/database.ts';

/** A pool that keeps the plan of each statement, as it was executed. */
function explaining(owner: pg.ClientBase, plans: string[]): pg.Pool {
  return {
    async query(asked: string | pg.QueryConfig, given?: unknown[]) {
      const { text, values } = typeof asked === 'string' ? { text: asked, values: given } : asked;
      const { rows } = await owner.query<Record<string, string>>(`explain (analyze) ${text}`, values);
      plans.push(rows.map((row) => row['QUERY PLAN']).join('\n'));
      return owner.query(text, values);
    },
  } as unknown as pg.Pool;
}

const nonce = (n: number) => `0x${String(n).padStart(64, '0')}` as const;

test('a payment that leaves its asset open is found without reading all payments of its payer', async () => {
  const database = await createDatabase();
  await database.asOwner(async (owner) => {
    const payer = `0x${'a'.repeat(40)}` as const;
    await owner.query(
      `insert into tollbook.claim (kind, owner, scope, key, binding, stream)
       select 'payment', case when n <= 30000 then $1 else '0x' || n end, 'eip155:1/eip3009/0x' || n % 3,
         '0x' || lpad(n::text, 64, '0'), 'b', 'quote' || n
       from generate_series(1, 40000) n`,
      [payer],
    );
    await owner.query('analyze tollbook.claim');
    const plans: string[] = [];
    const lookup = createPaymentLookup(explaining(owner, plans));
    const named = { network: 'eip155:1', transferMethod: 'eip3009', payer } as const;
    const find = (n: number, asset?: `0x${string}`) =>
      lookup.find({ ...named, asset, nonce: nonce(n) }, undefined);
    const found = await Promise.all([find(4), find(5), find(40_000), find(4, '0x1'), find(4, '0x2')]);
    expect(found.map(({ streams }) => streams)).toEqual([['quote4'], ['quote5'], [], ['quote4'], []]);
    const rows = [...(plans[0] ?? '').matchAll(/ on claim.*actual .*rows=([\d.]+) loops=(\d+)/g)];
    expect(rows.length).toBeGreaterThan(2);
    for (const [, each, loops] of rows) expect(Number(each) * Number(loops)).toBeLessThan(50);
    expect(plans[0]).not.toContain('Rows Removed by Filter: 1');
    expect(plans[0]).not.toContain('Seq Scan on claim');
  });
});

/** Enough for a plan that reads all of them to be the dearer one. */
const quotes = 20_000;

test('what the latest quotes offered is read at a start by an index and not from the whole ledger', async () => {
  const database = await createDatabase();
  await database.asOwner(async (owner) => {
    await owner.query(
      `insert into tollbook.event (lane_id, seq, version, stream, type, at, leaf)
       select 1, n, 1, 'quote' || n, 'quote_issued', now() - (${quotes} - n) * interval '1 minute',
         convert_to(json_build_object('data', json_build_object('service_id', 1, 'job_index', n % 2,
           'price_wei', (n / 6000)::text, 'options', '[]'::json, 'issued_at', n - 300, 'expires_at', n))::text, 'UTF8')
       from generate_series(1, ${quotes}) n`,
    );
    await owner.query('update tollbook.lane set seq = 250000');
    await owner.query('analyze tollbook.event');
    const plans: string[] = [];
    const explained = explaining(owner, plans);
    const offers = await readRecentOffers(explained, 300);
    expect(plans.at(-1)).not.toContain('Seq Scan on event');
    expect(offers).toEqual([]);
    await owner.query(`update tollbook.lane set seq = ${quotes}`);
    const found = await readRecentOffers(explained, 300);
    expect(plans.at(-1)).not.toContain('Seq Scan on event');
    expect(found.toSorted((a, b) => a.jobIndex - b.jobIndex)).toEqual([
      { serviceId: 1, jobIndex: 0, priceWei: 3n, options: [], untilSecs: quotes, issuedSecs: quotes - 300 },
      {
        serviceId: 1,
        jobIndex: 1,
        priceWei: 3n,
        options: [],
        untilSecs: quotes - 1,
        issuedSecs: quotes - 301,
      },
    ]);
  });
});
