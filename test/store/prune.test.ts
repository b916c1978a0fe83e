import { expect, test } from 'vitest';
import { pruneLane } from '../../src/store/calls.ts';
import { pruneChat } from '../../src/store/credit.ts';
import { endExposure, exposeSpend, pruneExposures } from '../../src/store/exposure.ts';
import { readHeads, recordAnchor } from '../../src/store/log.ts';
import type { CreditMove } from '../../src/store/append-batch.ts';
import { codeOf, fund, laneOn } from '../support/credit.ts';
import { createDatabase } from '../support/database.ts';
import { newStream } from '../support/events.ts';
import { appendRefusals, sealAll, testSigner } from '../support/log.ts';

const daySecs = 86_400;
const many = 1_000;

test('a result is deleted 30 days after it was stored, and never while its call can still be leased', async () => {
  const { pool, asOwner, moveClock } = await createDatabase();
  await asOwner((owner) =>
    owner.query(`
      insert into tollbook.call (stream, service_id, job_index, status, body_id, network, symbol, payment, due_at, created_at)
        values ('s', 1, 0, 'dead', gen_random_uuid(), 'n', 'USDC', 'p', now(), now());
      select tollbook.put_result(call_id, 1, gen_random_uuid(), null, 'a') from generate_series(1, 3) call_id`),
  );
  await moveClock(29 * daySecs);
  expect(await pruneLane(pool, many)).toBe(0);
  await moveClock(31 * daySecs);
  expect(await pruneLane(pool, many)).toBe(2);
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
  expect(await pruneLane(pool, many)).toBe(0);
  const deleted = asOwner((owner) => owner.query('delete from tollbook.log_head where size = 1'));
  await expect(deleted).rejects.toThrow(/is needed/);
  await moveClock(31 * daySecs);
  expect(await pruneLane(pool, many)).toBe(2);
  expect(await sizes()).toEqual([2, 4, 5]);
  await appendRefusals(database, 1);
  await sealAll(database);
  expect(await sizes()).toEqual([2, 4, 5, 6]);
});

test("an operator's request id moves credit once within 400 days, a top-up's for ever", async () => {
  const database = await createDatabase();
  const lane = laneOn(database);
  const accountId = await fund(database, lane, 0n);
  const move = async (requestId: string) => {
    const credit: CreditMove = { op: 'grant', accountId, amountMicros: 5n, requestId };
    return codeOf(await lane.appendCredit({ stream: newStream(), events: [], credit }));
  };
  for (const id of ['an-invoice-of-2026', 'topup:7']) expect(await move(id)).toBe('ok');
  await database.moveClock(399 * daySecs);
  expect(await pruneChat(database.pool, many)).toBe(0);
  expect(await move('an-invoice-of-2026')).toBe('repeated');
  await database.moveClock(401 * daySecs);
  expect(await pruneChat(database.pool, many)).toBe(1);
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
  expect(await pruneExposures(pool, many)).toBe(0);
  await moveClock(31 * daySecs);
  expect(await pruneExposures(pool, many)).toBe(3);
  expect((await pool.query('select stream from tollbook.payout order by 1')).rows).toEqual([
    { stream: 'later' },
    { stream: 'open' },
  ]);
  expect(await expose(3)).toBe(false);
});
