import { expect, test } from 'vitest';
import { prunedKinds } from '../../../src/ledger/rules/retention-events.ts';
import { endExposure, exposeSpend } from '../../../src/chat/store/exposure.ts';
import { readHeads, recordAnchor } from '../../../src/audit/store/log.ts';
import type { CreditMove } from '../../../src/ledger/store/append-batch.ts';
import { pruneRows, type PrunedRows } from '../../../src/ledger/store/pruning.ts';
import { codeOf, fund, databaseWithLane } from '../../support/credit.ts';
import { createDatabase } from '../../support/database.ts';
import { newStream } from '../../support/events.ts';
import { appendRefusals, sealAll, testSigner } from '../../support/log.ts';

const daySecs = 86_400;
const many = 1_000;
const rowKinds = prunedKinds.filter((kind): kind is PrunedRows => kind !== 'mails');

test('a result is deleted when its life has ended, and never while its call can still be leased', async () => {
  const { pool, asOwner, moveClock } = await createDatabase();
  await asOwner((owner) =>
    owner.query(`
      insert into tollbook.call (stream, service_id, job_index, status, body_id, network, asset, symbol, payment, due_at, created_at)
        values ('s', 1, 0, 'dead', gen_random_uuid(), 'n', '0xa5', 'USDC', 'p', now(), now());
      select tollbook.put_result(call_id, 1, gen_random_uuid(), null, 'a') from generate_series(1, 3) call_id`),
  );
  await moveClock(29 * daySecs);
  expect(await pruneRows(pool, 'call_results', 30 * daySecs, many)).toBe(0);
  await moveClock(31 * daySecs);
  expect(await pruneRows(pool, 'call_results', 30 * daySecs, many)).toBe(2);
  expect((await pool.query('select call_id from tollbook.call_result')).rows).toEqual([{ call_id: 1 }]);
});

test('of the tree heads older than 30 days those stay that are the newest, anchored or reported on', async () => {
  const database = await createDatabase();
  const { pool, asOwner, moveClock } = database;
  for (let round = 0; round < 5; round++) {
    await appendRefusals(database, 1);
    await sealAll(database);
  }
  const sizes = async () => (await readHeads(pool, testSigner.name, -1, many)).map(({ size }) => size);
  await recordAnchor(pool, testSigner.name, 'anchor', 2);
  await asOwner((owner) =>
    owner.query(`insert into tollbook.reconciliation
      (sha256, period_from, period_to, size, root, result, breaks, open_items, report, at)
      values ('', now(), now(), 4, '', 'clean', 0, 0, '', now())`),
  );
  expect(await pruneRows(pool, 'tree_heads', 30 * daySecs, many)).toBe(0);
  const deleted = asOwner((owner) => owner.query('delete from tollbook.log_head where size = 1'));
  await expect(deleted).rejects.toThrow(/is needed/);
  await moveClock(31 * daySecs);
  expect(await pruneRows(pool, 'tree_heads', 30 * daySecs, many)).toBe(2);
  expect(await sizes()).toEqual([2, 4, 5]);
  await appendRefusals(database, 1);
  await sealAll(database);
  expect(await sizes()).toEqual([2, 4, 5, 6]);
});

test("an operator's request id moves credit once within 400 days, a top-up's for ever", async () => {
  const { database, lane } = await databaseWithLane();
  const accountId = await fund(database, lane, 0n);
  const move = async (requestId: string) => {
    const credit: CreditMove = { op: 'grant', accountId, amountMicros: 5n, requestId };
    return codeOf(await lane.appendCredit({ stream: newStream(), events: [], credit }));
  };
  for (const id of ['an-invoice-of-2026', 'topup:7']) expect(await move(id)).toBe('ok');
  await database.moveClock(399 * daySecs);
  expect(await pruneRows(database.pool, 'request_ids', 400 * daySecs, many)).toBe(0);
  expect(await move('an-invoice-of-2026')).toBe('repeated');
  await database.moveClock(401 * daySecs);
  expect(await pruneRows(database.pool, 'request_ids', 400 * daySecs, many)).toBe(1);
  expect(await move('topup:7')).toBe('repeated');
});

test('failed spends are deleted when their authorization is long over, but their account gets no exposure again', async () => {
  const { pool, asOwner, moveClock } = await createDatabase();
  const of = {
    scope: 'chain/contract',
    commitment: '0xaa',
    amount: 1n,
    limit: 100n,
    nextNonce: 0n,
    balance: 100n,
  };
  const expose = (nonce: number) =>
    exposeSpend(pool, { ...of, stream: `spend:${nonce}`, nonce: BigInt(nonce) });
  for (const nonce of [0, 1, 2]) expect(await expose(nonce)).toBe(true);
  for (const nonce of [0, 1, 2]) await endExposure(pool, `spend:${nonce}`, true);
  const nowSecs = Math.floor(Date.now() / 1_000);
  await asOwner((owner) =>
    owner.query(`insert into tollbook.payout (stream, status, due_at, created_at, expiry) values
      ('over', 'failed', now(), now(), ${nowSecs}), ('later', 'failed', now(), now(), ${nowSecs + 90 * daySecs}),
      ('open', 'open', now(), now(), ${nowSecs})`),
  );
  await moveClock(29 * daySecs);
  const pruned = () =>
    Promise.all(
      (['failed_spends', 'failed_payouts'] as const).map((kind) => pruneRows(pool, kind, 30 * daySecs, many)),
    );
  expect(await pruned()).toEqual([0, 0]);
  await moveClock(31 * daySecs);
  expect(await pruned()).toEqual([2, 1]);
  expect((await pool.query('select stream from tollbook.payout order by 1')).rows).toEqual([
    { stream: 'later' },
    { stream: 'open' },
  ]);
  expect(await expose(3)).toBe(false);
});

test('no life, however short, deletes what may still be delivered, credited twice or needed for a proof', async () => {
  const database = await createDatabase();
  const { pool, asOwner, moveClock } = database;
  await appendRefusals(database, 1);
  await sealAll(database);
  await appendRefusals(database, 1);
  await sealAll(database);
  await asOwner((owner) =>
    owner.query(`
      select tollbook.put_body(gen_random_uuid(), null, 'a');
      with body as (select gen_random_uuid() as id), put as (select tollbook.put_body(id, null, 'b') from body)
        insert into tollbook.call (stream, service_id, job_index, status, body_id, network, asset, symbol, payment, due_at, created_at)
        select 's', 1, 0, status, body.id, 'n', '0xa5', 'USDC', 'p', now(), now()
        from body, put, unnest(array['dead', 'pending', 'watched', 'ready', 'leased', 'unpaid']) as status;
      insert into tollbook.follow_up (topic, seq, network, created_at, due_at)
        values ('confirm', 1, 'n', now(), now());
      insert into tollbook.credit_request values ('an-invoice-of-2026', 'grant', 1, 1, 1, now());
      select tollbook.queue_alert(array['slack'], 'low_gas', 's', 'firing', '', '{}', now(), null);
      insert into tollbook.rate_window values ('ip:1', '{}', current_date, 1);`),
  );
  const pruned = async () => {
    const counts: Partial<Record<PrunedRows, number>> = {};
    for (const kind of rowKinds) {
      const count = await pruneRows(pool, kind, 0, many);
      if (count > 0) counts[kind] = count;
    }
    return counts;
  };
  expect(await pruned()).toEqual({});
  await moveClock(3_601);
  expect(await pruned()).toEqual({ call_bodies: 1 });
  await moveClock(2.9 * daySecs);
  expect(await pruned()).toEqual({ rate_limits: 1 });
  await moveClock(29 * daySecs);
  expect(await pruned()).toEqual({ alert_messages: 1 });
  await moveClock(399 * daySecs);
  expect(await pruned()).toEqual({ follow_ups: 1, tree_heads: 1 });
  await moveClock(401 * daySecs);
  expect(await pruned()).toEqual({ request_ids: 1 });
  expect((await pool.query('select from tollbook.call_body')).rowCount).toBe(1);
});

test('a token or key is deleted when it ended so long ago, and one that still holds never', async () => {
  const { pool, asOwner, moveClock } = await createDatabase();
  await asOwner((owner) =>
    owner.query(`
      insert into tollbook.operator_token (name, scopes, hash, created_at, expires_at, revoked_at) values
        ('open', '{}', '1', now(), null, null), ('long', '{}', '2', now(), now() + interval '2 years', null),
        ('over', '{}', '3', now(), now(), null), ('revoked', '{}', '4', now(), null, now());
      insert into tollbook.account (name, created_at) values ('acme', now());
      insert into tollbook.api_key (account_id, hash, name, created_at, expires_at, revoked_at, is_of_user)
        select 1, hash, name, created_at, expires_at, revoked_at, false from tollbook.operator_token`),
  );
  const pruned = () =>
    Promise.all(
      (['operator_tokens', 'api_keys'] as const).map((kind) => pruneRows(pool, kind, 400 * daySecs, many)),
    );
  await moveClock(399 * daySecs);
  expect(await pruned()).toEqual([0, 0]);
  await moveClock(401 * daySecs);
  expect(await pruned()).toEqual([2, 2]);
  for (const table of ['operator_token', 'api_key'])
    expect((await pool.query(`select name from tollbook.${table} order by 1`)).rows).toEqual([
      { name: 'long' },
      { name: 'open' },
    ]);
});
