import { expect, test } from 'vitest';
import { type TestDatabase } from '../support/database.ts';
import { useChain } from '../support/devnet.ts';
import { runnerSecret, startWithDatabase } from '../support/gateway.ts';
import { readPage } from '../support/pages.ts';
import { eventually } from '../support/wait.ts';

const chain = useChain();

/** Statements that the database has run so far, its connections, and the moment. */
async function read(database: TestDatabase) {
  return database.asOwner(async (owner) => {
    const { rows } = await owner.query<{ statements: number; connections: number; at: number }>(
      `select (xact_commit + xact_rollback)::int as statements, numbackends as connections, extract(epoch from clock_timestamp())::float8 as at
       from pg_stat_database where datname = current_database()`,
    );
    return rows[0] ?? { statements: 0, connections: 0, at: 0 };
  });
}

/** Statements a second, over at least ten seconds. */
async function rateOf(database: TestDatabase): Promise<number> {
  const before = await read(database);
  const after = await eventually(async () => {
    const now = await read(database);
    expect(now.at - before.at).toBeGreaterThan(10);
    return now;
  });
  return (after.statements - before.statements) / (after.at - before.at);
}

test('lease requests that wait together cost no more statements a second than the page says, and no connection', async () => {
  const { database, gateway } = await startWithDatabase({
    chain,
    tables: '[[runners]]\nservices = [1]\nmode = "lease"\ntoken = "env:RUNNER_TOKEN"',
  });
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${runnerSecret}` };
  const body = JSON.stringify({ max: 1, lease_secs: 60, wait_secs: 30 });
  const idle = await rateOf(database);
  const waiting = 100;
  const requests = Array.from({ length: waiting }, () =>
    gateway.post('/runner/leases', { body, headers }).catch(() => undefined),
  );
  const busy = await rateOf(database);
  const { connections } = await read(database);
  const [, said = ''] = /no more than (\d+)\s+statements a second/.exec(readPage('docs/scale.md').text) ?? [];
  expect(busy - idle).toBeLessThan(Number(said));
  expect(connections).toBeLessThan(waiting / 2);
  await gateway.stop();
  await Promise.all(requests);
});
