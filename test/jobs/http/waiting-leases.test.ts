import { expect, test } from 'vitest';
import { asRunner, leasingRunner } from '../../support/leases.ts';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { startTestGateway } from '../../support/gateway.ts';
import { eventually } from '../../support/wait.ts';
import { pay } from '../../app/workers/relay-support.ts';

const chain = useChain();

test('of many requests that wait one looks for a call that is released, and each call is answered to one of them immediately', async () => {
  const database = await createDatabase();
  const countLooks = () =>
    database.asOwner(async (owner) => {
      const { rows } = await owner.query<{ calls: number }>(
        "select calls::int from pg_stat_user_functions where funcname = 'lease_calls'",
      );
      return rows[0]?.calls ?? 0;
    });
  await database.asOwner((owner) =>
    owner.query(
      "do $$ begin execute format('alter database %I set track_functions = pl', current_database()); end $$",
    ),
  );
  const gateway = await startTestGateway({ database, chain, tables: leasingRunner });
  const got: number[] = [];
  const lease = async (): Promise<void> => {
    const { json } = await asRunner(gateway, '/runner/leases', { max: 1, lease_secs: 60, wait_secs: 30 });
    for (const { call_id: callId } of json.calls) got.push(callId);
  };
  const waiting = 50;
  const startedAt = performance.now();
  const answers = Array.from({ length: waiting }, lease);
  // each has looked when it came
  await eventually(async () => expect(await countLooks()).toBeGreaterThanOrEqual(waiting));
  const paid: number[] = [];
  for (let n = 0; n < 10; n += 1) paid.push((await pay(gateway)).callId);
  await eventually(() => expect(got.toSorted((a, b) => a - b)).toEqual(paid));
  const secs = (performance.now() - startedAt) / 1_000;
  await gateway.stop();
  await Promise.all(answers);
  expect(got).toHaveLength(paid.length);
  // two for each that came, a few for each call, and one or two a second: all would have looked for each call, and each second
  expect(await countLooks()).toBeLessThan(2 * waiting + 10 * paid.length + 5 * secs);
});
