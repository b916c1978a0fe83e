import { expect, test } from 'vitest';
import { useChain } from '../../support/devnet.ts';
import { startWithDatabase } from '../../support/gateway.ts';
import { asRunner, leasingRunner } from '../../support/leases.ts';
import { payFor } from '../../support/payer.ts';

const chain = useChain();
test('a failure that asks for a time is not leased again before it, and waits for an hour at most', async () => {
  const constants = { delivery: { backoffCapMs: 1 } };
  const { database, gateway } = await startWithDatabase({ chain, tables: leasingRunner, constants });
  const ask = (path: string, body: object) => asRunner(gateway, path, body);
  const lease = () => ask('/runner/leases', { max: 10, lease_secs: 60 });
  expect((await payFor(gateway, '/x402/jobs/1/0')).status).toBe(202);
  const failFor = async (retry_after_secs: number) => {
    const [{ call_id, lease_id }] = (await lease()).json.calls;
    const body = { lease_id, error: 'not yet', retry: true, retry_after_secs };
    expect((await ask(`/runner/calls/${call_id}/fail`, body)).status).toBe(200);
    const { rows } = await database.pool.query<{ secs: number }>(
      `select extract(epoch from due_at - tollbook.clock())::float8 as secs from tollbook.call`,
    );
    return rows[0]?.secs ?? 0;
  };
  const secs = await failFor(600);
  expect(secs > 540 && secs <= 600).toBe(true);
  expect((await lease()).json.calls).toEqual([]);
  await database.moveClock(601);
  const most = await failFor(86_400);
  expect(most > 3_540 && most <= 3_600).toBe(true);
  await database.moveClock(601 + 3_601);
  const [{ call_id, lease_id }] = (await lease()).json.calls;
  const wrong = { lease_id, error: 'not yet', retry: true, retry_after_secs: -1 };
  expect((await ask(`/runner/calls/${call_id}/fail`, wrong)).json.code).toBe('invalid_request');
});
