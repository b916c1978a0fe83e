import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import type { ConstantChanges } from '../../../src/base/config/constants.ts';
import { discardByPolicy } from '../../../src/calls/use-cases/discard-call.ts';
import { writerRole } from '../../../src/ledger/store/database.ts';
import { openLane } from '../../../src/ledger/store/lane.ts';
import { listRefundsDue } from '../../../src/payments/store/refunds.ts';
import { failCall, leaseOne } from '../../support/leases.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { startTestGateway, testConfig, type TestGateway } from '../../support/gateway.ts';
import { allEvents, expectSoundLedger } from '../../support/invariants.ts';
import { payFor } from '../../support/payer.ts';
import { eventually } from '../../support/wait.ts';

const chain = useChain();

/** Jobs 1/0, with the given keys, and 1/1, with none. */
const optionsOf = (database: TestDatabase, keys: string, delivery: ConstantChanges['delivery'] = {}) => ({
  database,
  chain,
  jobs: `[job_prices.1]\n0 = "1"\n1 = "1"
[[job_policies]]\nservice_id = 1\njob_index = 0\ninvocation_mode = "public_paid"\n${keys}
[[job_policies]]\nservice_id = 1\njob_index = 1\ninvocation_mode = "public_paid"`,
  tables: `[[runners]]\nservices = [1]\nmode = "lease"\ntoken = "env:RUNNER_TOKEN"`,
  constants: { delivery },
});

async function pay(gateway: TestGateway, job: number): Promise<number> {
  const paid = await payFor(gateway, `/x402/jobs/1/${job}`);
  expect(paid.status).toBe(202);
  return paid.json.call_id as number;
}

/** Leases the only call that waits and reports that it failed. */
const failOnce = async (gateway: TestGateway, retry: boolean): Promise<void> =>
  failCall(gateway, await leaseOne(gateway), { retry });

async function statusOf(database: TestDatabase, callId: number): Promise<string | undefined> {
  const { rows } = await database.pool.query<{ status: string }>(
    `select status from tollbook.call where call_id = ${callId}`,
  );
  return rows[0]?.status;
}

test('a job has as many attempts as its policy says, others as many as all jobs, and a reload changes it', async () => {
  const database = await createDatabase();
  const delivery = { maxAttempts: 3, backoffCapMs: 1 };
  const gateway = await startTestGateway(optionsOf(database, 'max_attempts = 2', delivery));
  const attemptsOf = async (job: number): Promise<number> => {
    const callId = await pay(gateway, job);
    for (let attempt = 1; ; attempt++) {
      await failOnce(gateway, true);
      if ((await statusOf(database, callId)) === 'dead') return attempt;
    }
  };
  expect([await attemptsOf(0), await attemptsOf(1)]).toEqual([2, 3]);
  const changes = await gateway.reload(await testConfig(optionsOf(database, 'max_attempts = 1', delivery)));
  expect(changes).toEqual([]);
  expect([await attemptsOf(0), await attemptsOf(1)]).toEqual([1, 3]);
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('dead letters of a job that discards them are given up once after their time, those of other jobs are kept, and each refund is due', async () => {
  const database = await createDatabase();
  const options = optionsOf(database, 'discard_after_secs = 3_600');
  const gateway = await startTestGateway(options);
  await startTestGateway(options);
  const [given, kept] = [await pay(gateway, 0), await pay(gateway, 1)];
  for (let i = 0; i < 2; i++) await failOnce(gateway, false);
  expect([await statusOf(database, given), await statusOf(database, kept)]).toEqual(['dead', 'dead']);
  const discarded = async () =>
    (await allEvents(database.db)).flatMap(({ type, data }) => (type === 'operator_discarded' ? [data] : []));
  expect(await discarded()).toEqual([]);
  await database.moveClock(3_700);
  await eventually(async () => expect(await statusOf(database, given)).toBe(undefined));
  const record = {
    call_id: given,
    why: 'the policy of job 1/0 gives dead letters up after 3600 seconds',
    operator: 'policy',
  };
  expect(await discarded()).toEqual([record]);
  expect(await statusOf(database, kept)).toBe('dead');
  await eventually(async () => {
    const { rows } = await listRefundsDue(database.pool, 0, 100);
    expect(rows.map(({ call_id, why }) => [call_id, why])).toEqual([
      [given, 'dead_lettered'],
      [kept, 'dead_lettered'],
    ]);
  });
  expect(await discarded()).toEqual([record]);
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('a look for dead letters to give up reads none of the many that are kept', async () => {
  const database = await createDatabase();
  const gateway = await startTestGateway(optionsOf(database, ''));
  await pay(gateway, 1);
  await failOnce(gateway, false);
  await gateway.stop();
  await database.asOwner(async (owner) => {
    const { rows } = await owner.query<{ column_name: string }>(
      `select column_name from information_schema.columns
       where table_schema = 'tollbook' and table_name = 'call' and column_name not in ('call_id', 'stream', 'due_at')`,
    );
    const columns = rows.map(({ column_name: name }) => name).join(', ');
    await owner.query(
      `insert into tollbook.call (call_id, stream, due_at, ${columns}) overriding system value
       select 1000000 + n, stream || n, due_at - interval '1 day', ${columns} from tollbook.call, generate_series(1, 100000) n`,
    );
  });
  const rowsRead = async () => {
    // the connections that have read report it
    await Promise.all(
      Array.from({ length: 20 }, () =>
        database.pool.query('select pg_stat_force_next_flush(), pg_sleep(0.1)'),
      ),
    );
    return database.asOwner(async (owner) => {
      const { rows } = await owner.query<{ read: number }>(
        "select (seq_tup_read + idx_tup_fetch)::int as read from pg_stat_user_tables where relname = 'call'",
      );
      return rows[0]?.read ?? 0;
    });
  };
  const lane = openLane({ url: database.url, role: writerRole, flushers: 1 });
  onTestFinished(() => lane.close(1_000));
  const { jobs } = await testConfig(optionsOf(database, 'discard_after_secs = 0'));
  if (!jobs) throw new Error('no jobs');
  const context = { ...database, lane, settings: jobs, log: pino({ level: 'silent' }) };
  const before = await rowsRead();
  const looks = 20;
  for (let look = 0; look < looks; look++) expect(await discardByPolicy(context)).toBe(false);
  expect((await rowsRead()) - before).toBeLessThan(looks * 1_000);
});
