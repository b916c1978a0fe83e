import type pg from 'pg';
import { expect, test } from 'vitest';
import { claimKey } from '../../../src/ledger/store/claim-key.ts';
import { createPaymentLookup } from '../../../src/payments/store/payment-lookup.ts';
import {
  extendPrices,
  findPriceWindow,
  offerPrices,
  type PriceList,
} from '../../../src/payments/store/price-windows.ts';
import { paymentClaim } from '../../../src/payments/store/claims.ts';
import { createDatabase } from '../../support/database.ts';

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

test('a payment that leaves its asset open is found without reading other claims', async () => {
  const database = await createDatabase();
  await database.asOwner(async (owner) => {
    const payer = `0x${'a'.repeat(40)}` as const;
    const named = { network: 'eip155:1', transferMethod: 'eip3009', payer } as const;
    const claims = Array.from({ length: 10_000 }, (_, n) =>
      claimKey(paymentClaim({ ...named, asset: `0x${n % 3}`, nonce: nonce(n) }, '')).toString('hex'),
    );
    await owner.query(
      `insert into tollbook.claim (key, binding, stream)
       select decode(key, 'hex'), '', tollbook.stream_key('quote' || n - 1) from unnest($1::text[]) with ordinality as c(key, n)`,
      [claims],
    );
    await owner.query('analyze tollbook.claim');
    const plans: string[] = [];
    const lookup = createPaymentLookup(explaining(owner, plans));
    const find = (n: number, asset?: `0x${string}`) =>
      lookup.find({ ...named, asset, nonce: nonce(n) }, undefined);
    const found = await Promise.all([find(4), find(5), find(10_000), find(4, '0x1'), find(4, '0x2')]);
    expect(found.map(({ streams }) => streams)).toEqual([['quote4'], ['quote5'], [], ['quote4'], []]);
    const rows = [...(plans[0] ?? '').matchAll(/ on claim.*actual .*rows=([\d.]+) loops=(\d+)/g)];
    expect(rows.length).toBeGreaterThan(0);
    for (const [, each, loops] of rows) expect(Number(each) * Number(loops)).toBeLessThan(50);
    expect(plans[0]).not.toContain('Rows Removed by Filter: 1');
    expect(plans[0]).not.toContain('Seq Scan on claim');
  });
});

const listOf = (id: string, prices: PriceList['prices']): PriceList => ({
  id: Buffer.from(id),
  validSecs: 300,
  prices,
});

test("a version 1 payment's price is found without reading the windows of other jobs and amounts", async () => {
  const database = await createDatabase();
  const terms = { network: 'eip155:1', transferMethod: 'eip3009', asset: '0x1', payTo: '0x2' } as const;
  const priceOf = (jobIndex: number, amount: number) => ({
    service_id: 1,
    job_index: jobIndex,
    network: terms.network,
    transfer_method: terms.transferMethod,
    asset: terms.asset,
    pay_to: terms.payTo,
    amount,
    price_wei: amount * 2,
    credit_micros: null,
  });
  const jobs = Array.from({ length: 3_000 }, (_, index) => priceOf(index, 5));
  const [one, two] = [listOf('one', jobs), listOf('two', [...jobs.slice(1), priceOf(1, 7)])];
  await offerPrices(database.pool, one);
  await offerPrices(database.pool, two);
  const plans: string[] = [];
  const find = (jobIndex: number, amount: bigint, revokedBefore = 0) =>
    database.asOwner(async (owner) => {
      await owner.query('analyze tollbook.price_window');
      const job = { serviceId: 1, jobIndex };
      const option = { ...terms, amount, symbol: '', decimals: 6, eip712Name: '', eip712Version: '' };
      return findPriceWindow(explaining(owner, plans), job, option, revokedBefore);
    });
  const nowSecs = Math.floor(Date.now() / 1_000);
  // job 0 is not in the second list: its price of the first one is withdrawn
  expect(await find(0, 5n)).toBeUndefined();
  expect(await find(1, 5n)).toMatchObject({ priceWei: 10n, creditMicros: undefined });
  expect(await find(1, 7n)).toMatchObject({ priceWei: 14n });
  expect(await find(1, 6n)).toBeUndefined();
  expect(await find(1, 5n, nowSecs + 60)).toBeUndefined();
  for (const plan of plans) expect(plan).not.toMatch(/Seq Scan on price_window|Rows Removed by Filter: \d\d/);

  // a list ends when no gateway extends it, and can be offered again
  await database.moveClock(200);
  await extendPrices(database.pool, two);
  await database.moveClock(400);
  expect(await find(1, 5n)).toMatchObject({ priceWei: 10n });
  await database.moveClock(701);
  expect(await find(1, 5n)).toBeUndefined();
  await offerPrices(database.pool, one);
  await extendPrices(database.pool, two);
  expect(await find(0, 5n)).toBeUndefined();
  expect(await find(1, 7n)).toMatchObject({ priceWei: 14n });
});
