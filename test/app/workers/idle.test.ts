import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { type TestDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { startWithDatabase } from '../../support/gateway.ts';
import { eventually } from '../../support/wait.ts';

const chain = useChain();

async function transactionsOf({ pool }: TestDatabase): Promise<number> {
  const { rows } = await pool.query<{ sum: number }>(
    `select (xact_commit + xact_rollback)::int as sum from pg_stat_database where datname = current_database()`,
  );
  return rows[0]?.sum ?? 0;
}

test('the workers of a gateway that has nothing to do pause: its database gets fewer than 60 transactions a second', async () => {
  const { database, gateway } = await startWithDatabase({ chain });
  await eventually(async () => expect(await gateway.get('/x402/ready')).toMatchObject({ status: 200 }));
  const before = await transactionsOf(database);
  const sinceMs = performance.now();
  await sleep(2_500);
  const secs = (performance.now() - sinceMs) / 1_000;
  expect(((await transactionsOf(database)) - before) / secs).toBeLessThan(60);
});
