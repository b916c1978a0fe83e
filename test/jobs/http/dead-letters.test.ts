import { expect, test } from 'vitest';
import { issueOperatorToken } from '../../../src/accounts/use-cases/operator-tokens.ts';
import { discardCall, discardCalls } from '../../../src/calls/use-cases/discard-call.ts';
import { requeueCall, requeueCalls } from '../../../src/calls/use-cases/requeue-call.ts';
import { writerRole } from '../../../src/ledger/store/database.ts';
import { type Lane, openLane } from '../../../src/ledger/store/lane.ts';
import { failCall, leaseOne } from '../../support/leases.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { allEvents, expectSound } from '../../support/invariants.ts';
import { payFor } from '../../support/payer.ts';
import { tollbook } from '../../support/program.ts';

const chain = useChain();
const runnerToken = 'a-secret-of-the-test-runner-of-length';
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

function start(database: TestDatabase): Promise<TestGateway> {
  return startTestGateway({
    database,
    chain,
    isDocumented: true,
    tables: '[[runners]]\nservices = [1]\nmode = "lease"\ntoken = "env:RUNNER_TOKEN"',
    env: { RUNNER_TOKEN: runnerToken },
  });
}

/** Pays for a call of each job, and has its runner refuse it with these words. Returns the call ids. */
async function deadLetters(gateway: TestGateway, errors: readonly string[], job = 0): Promise<number[]> {
  const callIds: number[] = [];
  for (const error of errors) {
    expect((await payFor(gateway, `/x402/jobs/1/${job}`)).status).toBe(202);
    const leased = await leaseOne(gateway);
    await failCall(gateway, leased, { error });
    callIds.push(leased.call_id);
  }
  return callIds;
}

async function withLane<T>(database: TestDatabase, use: (lane: Lane) => Promise<T>): Promise<T> {
  const lane = openLane({ url: database.url, role: writerRole });
  try {
    return await use(lane);
  } finally {
    await lane.close();
  }
}

/** Asks as an operator who may do anything with calls. */
async function operatorOf(database: TestDatabase, gateway: TestGateway) {
  const { token } = await withLane(database, (lane) =>
    issueOperatorToken(
      { ...database, lane },
      { name: 'ops', scopes: ['calls:read', 'calls:write', 'audit:read'] },
    ),
  );
  const headers = { 'content-type': 'application/json', ...bearer(token) };
  return {
    get: async (path: string) => (await gateway.get(`/operator/${path}`, bearer(token))).json,
    read: async (path: string) => (await gateway.get(path, bearer(token))).json,
    post: async (path: string, body: object) =>
      (await gateway.post(`/operator/${path}`, { body: JSON.stringify(body), headers })).json,
  };
}

const typesOf = async (database: TestDatabase, callId: number) =>
  (await allEvents(database.db))
    .filter(({ data }) => 'call_id' in data && data.call_id === callId)
    .map(({ type }) => type);

test('a filter that is empty, or where the route reads none, is refused: it means neither service 0 nor everything', async () => {
  const database = await createDatabase();
  const gateway = await start(database);
  const [first] = await deadLetters(gateway, ['no model 17']);
  const { get, post, read } = await operatorOf(database, gateway);
  const refused = { code: 'invalid_request' };
  expect(await get('dead-letters/causes?service_id=')).toMatchObject(refused);
  expect(await get('dead-letters/causes?service_id=1&job_index=')).toMatchObject(refused);
  for (const list of ['payments', 'calls', 'totals'])
    expect(await read(`/audit/${list}?service_id=`)).toMatchObject(refused);
  expect(await post('dead-letters/requeue?service_id=7', {})).toMatchObject(refused);
  const discard = { why: 'the model is gone', service_id: 1, count: 1 };
  expect(await post('dead-letters/discard?job_index=7', discard)).toMatchObject(refused);
  expect(await typesOf(database, first ?? 0)).not.toContain('operator_requeued');
  expect(await typesOf(database, first ?? 0)).not.toContain('operator_discarded');
});

test('dead letters are grouped by cause, and those of one cause are requeued and others given up, each refund due once', async () => {
  const database = await createDatabase();
  const gateway = await start(database);
  const missing = await deadLetters(gateway, ['no model 17', 'no model 18', 'no model 19']);
  const [broken] = await deadLetters(gateway, ['row 4 is broken'], 1);
  const { get, post } = await operatorOf(database, gateway);

  const grouped = await get('dead-letters/causes');
  expect(grouped).toMatchObject({
    causes: [
      { words: 'no model #', calls: 3, jobs: ['1/0'], runners: ['runner-1'], example_call_id: missing[0] },
      { words: 'row # is broken', calls: 1, jobs: ['1/1'], reason: 'runner_failed' },
    ],
    others: 0,
    next: null,
  });
  const [{ cause }, { cause: otherCause }] = grouped.causes;
  expect((await get('dead-letters')).calls.map((call: { cause: string }) => call.cause)).toEqual([
    cause,
    cause,
    cause,
    otherCause,
  ]);
  expect((await get('dead-letters/causes?service_id=1&job_index=1')).causes).toMatchObject([
    { cause: otherCause },
  ]);
  expect((await get('dead-letters/causes?before=2020-01-01T00:00:00Z')).causes).toEqual([]);
  expect(await get('dead-letters/causes?job_index=1&days=7')).toMatchObject({ code: 'invalid_request' });

  const none = { skipped: [], next: null };
  expect(await post('dead-letters/requeue', { cause, limit: 1, dry_run: true })).toEqual({
    ...none,
    requeued: 1,
    next: missing[0],
  });
  expect(await post('dead-letters/requeue', { cause, after: missing[0] })).toEqual({ ...none, requeued: 2 });
  // what was done is not done again
  expect(await post('dead-letters/requeue', { cause, after: missing[0] })).toEqual({ ...none, requeued: 0 });
  expect(await post('dead-letters/requeue', { cause: 'x' })).toMatchObject({ code: 'invalid_request' });
  expect(await post('dead-letters/requeue', { job_index: 1 })).toMatchObject({ code: 'invalid_request' });

  const why = 'the model is gone';
  expect(await post('dead-letters/discard', { why })).toMatchObject({ code: 'invalid_request' });
  expect(await post('dead-letters/discard', { cause })).toMatchObject({ code: 'invalid_request' });
  expect(await post('dead-letters/discard', { why, all: true, cause })).toMatchObject({
    code: 'invalid_request',
  });
  expect(await post('dead-letters/discard', { why, cause, dry_run: true })).toEqual({
    ...none,
    discarded: 1,
  });
  expect(await post('dead-letters/discard', { why, cause })).toMatchObject({ code: 'invalid_request' });
  expect(await post('dead-letters/discard', { why, cause, count: 2 })).toMatchObject({
    code: 'count_differs',
    meant: 1,
  });
  expect(await post('dead-letters/discard', { why, cause, count: 1 })).toEqual({ ...none, discarded: 1 });
  expect(await post('dead-letters/discard', { why, cause, count: 0 })).toEqual({ ...none, discarded: 0 });
  expect(await post('dead-letters/discard', { why, all: true, count: 1 })).toEqual({ ...none, discarded: 1 });
  expect((await get('dead-letters/causes')).causes).toEqual([]);
  expect(await post(`dead-letters/${broken}/requeue`, {})).toMatchObject({ code: 'call_not_found' });
  const events = await allEvents(database.db);
  expect(events.flatMap(({ type, data }) => (type === 'operator_discarded' ? [data] : []))).toMatchObject([
    { call_id: missing[0], why, operator: 'ops' },
    { call_id: broken, why, operator: 'ops' },
  ]);
  for (const callId of [missing[0] ?? 0, broken ?? 0])
    expect(await typesOf(database, callId)).toEqual([
      'enqueued',
      'delivered',
      'dead_lettered',
      'operator_discarded',
    ]);
  await expectSound(database);
});

test('a dead letter that is requeued while it is given up is recorded in an order that both verifiers accept', async () => {
  const database = await createDatabase();
  const gateway = await start(database);
  const [first = 0, second = 0, third = 0] = await deadLetters(gateway, ['a', 'b', 'c']);
  const by = { why: 'the model is gone', operator: 'ops' };
  await withLane(database, async (lane) => {
    const ledger = { db: database.db, pool: database.pool, lane };
    /** A ledger in which another operator requeues the call once its state was read. */
    const overtaken = (callId: number) => {
      let isOvertaken = false;
      const pool = new Proxy(database.pool, {
        get(target, name) {
          const value: unknown = Reflect.get(target, name);
          if (name !== 'query' || typeof value !== 'function') return value;
          return async (...args: unknown[]) => {
            if (!isOvertaken) {
              isOvertaken = true;
              expect(await requeueCall(ledger, callId)).toEqual({ kind: 'requeued' });
            }
            return Reflect.apply(value, target, args) as unknown;
          };
        },
      });
      return { ...ledger, pool };
    };
    // named by its id, a call that waits is given up as well
    expect(await discardCall(overtaken(first), first, by)).toEqual({
      kind: 'discarded',
      money: 'refund_due',
    });
    expect((await typesOf(database, first)).slice(2)).toEqual([
      'dead_lettered',
      'operator_requeued',
      'dead_lettered',
      'operator_discarded',
    ]);
    // among many, one that is not a dead letter any more stays in the queue
    const batch = { choice: {}, after: 0, max: 1, isDryRun: false, by };
    expect(await discardCalls(overtaken(second), batch)).toEqual({
      done: 0,
      skipped: [{ callId: second, why: 'not_dead' }],
      next: second,
    });
    expect((await typesOf(database, second)).at(-1)).toBe('operator_requeued');
    // and of many who requeue and give up at once each call has one end
    const all = { choice: {}, after: 0, max: 10, isDryRun: false };
    const ends = await Promise.all([
      ...Array.from({ length: 4 }, () => requeueCalls(ledger, all)),
      ...Array.from({ length: 4 }, () => discardCalls(ledger, { ...all, by })),
    ]);
    expect(ends.reduce((sum, { done }) => sum + done, 0)).toBe(1);
    expect((await typesOf(database, third)).slice(3)).toHaveLength(1);
  });
  await expectSound(database);
});

test('many dead letters of one cause among many others are found in bounded batches', async () => {
  const database = await createDatabase();
  const gateway = await start(database);
  const [callId] = await deadLetters(gateway, ['seed']);
  // dead letters as the ledger has them, without their payments: nothing can be done with them
  await database.asOwner(async (owner) => {
    await owner.query('alter table tollbook.call disable trigger user');
    const { rows } = await owner.query<{ column_name: string }>(
      `select column_name from information_schema.columns
       where table_schema = 'tollbook' and table_name = 'call' and column_name not in ('call_id', 'last_error', 'stream') and is_generated = 'NEVER'`,
    );
    const columns = rows.map(({ column_name: name }) => name).join(', ');
    await owner.query(
      `insert into tollbook.call (call_id, stream, last_error, ${columns}) overriding system value
       select 1000000 + n, stream || n, case when n % 1000 = 0 then 'rare ' || n else translate(md5(n::text), '0123456789', 'ghijklmnop') end, ${columns}
       from tollbook.call, generate_series(1, 25000) n where call_id = ${callId}`,
    );
  });
  const { get, post } = await operatorOf(database, gateway);
  const grouped = await get('dead-letters/causes');
  expect(grouped.next).toBe(null);
  const sum = grouped.causes.reduce((calls: number, group: { calls: number }) => calls + group.calls, 0);
  expect([sum + grouped.others, grouped.causes.length]).toEqual([25_001, 1_000]);
  const [{ cause }] = grouped.causes.filter(({ words }: { words: string }) => words === 'rare #');
  const first = await post('dead-letters/requeue', { cause, dry_run: true });
  expect(first).toMatchObject({ requeued: 0, next: 1_019_999 });
  expect(first.skipped).toHaveLength(19);
  const second = await post('dead-letters/requeue', { cause, dry_run: true, after: first.next });
  expect(second).toMatchObject({ requeued: 0, next: null });
  expect(second.skipped).toHaveLength(6);
});

test('the commands group, requeue and give up dead letters by cause', async () => {
  const database = await createDatabase();
  const gateway = await start(database);
  await deadLetters(gateway, ['no model 17', 'no model 18', 'row 4\u001b[31m is broken']);
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await tollbook(['calls', ...args], { DATABASE_URL: database.url });
    return { code, said: stdout + stderr };
  };
  const { said } = await run('dead', '--by-cause', '--job', '1/0');
  expect(said).toMatch(
    /^2 calls {2}cause (\S+)\n {2}jobs 1\/0 {2}runners runner-1 .*\n {2}no model #\n1 calls /,
  );
  expect(said).not.toContain('\u001b');
  const [cause = '', other = ''] = [...said.matchAll(/cause (\S+)/g)].map((match) => match[1] ?? '');
  expect((await run('dead')).said.match(new RegExp(`cause ${cause}`, 'g'))).toHaveLength(2);
  expect(await run('requeue', '--cause', cause, '--runner', 'runner-1')).toEqual({
    code: 0,
    said: '2 calls queued again. 0 skipped.\n',
  });
  const discard = ['discard', '--cause', other, '--why', 'the model is gone', '--by', 'ops'];
  expect(await run(...discard, '--dry-run')).toEqual({
    code: 0,
    said: '1 calls would be given up; nothing was changed. 0 skipped. See `tollbook refunds due`.\n',
  });
  for (const unconfirmed of [[], ['--count', '2']])
    expect(await run(...discard, ...unconfirmed)).toMatchObject({
      code: 2,
      said: expect.stringContaining('1 dead letters are meant. Nothing was changed') as string,
    });
  expect(await run(...discard, '--count', '1')).toMatchObject({
    code: 0,
    said: expect.stringMatching(/^1 calls given up\./) as string,
  });
  expect(await run('dead', '--by-cause')).toEqual({ code: 0, said: 'No call is dead-lettered.\n' });
  for (const wrong of [
    ['requeue', '--cause', 'no model'],
    ['requeue', '--cause', cause, '--all'],
    ['requeue', '--job', '3'],
    ['requeue', '--job', '3/0', '--service', '3'],
    ['discard', '--all'],
    ['discard', '--why', 'nothing is named'],
    ['dead', '--service', '1'],
  ])
    expect((await run(...wrong)).code).toBe(2);
  await expectSound(database);
});
