import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { BudgetTerms } from '../../../src/accounts/store/api-keys.ts';
import { createApiKey, findApiKeyById, revokeApiKey } from '../../../src/accounts/store/api-keys.ts';
import type { Admission } from '../../../src/ledger/store/append-batch.ts';
import { findAccount, markHoldsStarted } from '../../../src/accounts/store/credit.ts';
import type { Lane } from '../../../src/ledger/store/lane.ts';
import { sendHeartbeat } from '../../../src/ledger/store/processes.ts';
import { clockAt } from '../../support/append-ways.ts';
import {
  admission,
  codeOf,
  expectBooks,
  fund,
  laneOn,
  settle,
  settlement,
  databaseWithLane,
} from '../../support/credit.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { expectSoundLedger } from '../../support/invariants.ts';

describe('credit', () => {
  test('for 14 admits exactly 14 of 200 simultaneous ones, from two processes, and never goes below zero', async () => {
    const database = await createDatabase();
    const lanes = [laneOn(database), laneOn(database)];
    const accountId = await fund(database, lanes[0] as Lane, 1_400n);
    const outcomes = await Promise.all(
      Array.from({ length: 200 }, (_, at) =>
        (lanes[at % 2] as Lane).appendCredit(admission({ accountId, holdMicros: 100n })),
      ),
    );
    const codes = outcomes.map(codeOf);
    expect(codes.filter((code) => code === 'ok')).toHaveLength(14);
    expect(codes.filter((code) => code === 'insufficient_funds')).toHaveLength(186);
    expect(await findAccount(database.db, { accountId })).toMatchObject({
      balanceMicros: 0,
      heldMicros: 1_400,
    });
    await expectBooks(database);
  });

  test('is captured at its cost and the rest is free again, once', async () => {
    const { database, lane } = await databaseWithLane();
    const accountId = await fund(database, lane, 1_000n);
    const command = admission({ accountId, holdMicros: 300n });
    await lane.appendCredit(command);
    expect(codeOf(await settle(lane, command.admit, 120n, 180n))).toBe('ok');
    expect(codeOf(await settle(lane, command.admit, 120n, 180n))).toBe('gone');
    expect(await findAccount(database.db, { accountId })).toMatchObject({
      balanceMicros: 880,
      heldMicros: 0,
      usedMicros: 120,
    });
    await expectBooks(database);
  });

  test('that a refusal names is what there is', async () => {
    const { database, lane } = await databaseWithLane();
    const accountId = await fund(database, lane, 70n);
    const refused = await lane.appendCredit(admission({ accountId, holdMicros: 100n }));
    expect(refused).toMatchObject({ code: 'insufficient_funds', detail: { available: 70 } });
    await expectBooks(database);
  });
});

async function keyOf(
  database: TestDatabase,
  lane: Lane,
  capMicros?: bigint,
  expiresAt?: Date,
  budget?: BudgetTerms,
) {
  const accountId = await fund(database, lane, 1_000n);
  const keyId = await createApiKey(database.pool, {
    accountId,
    hash: randomUUID().replaceAll('-', '').repeat(2),

    name: 'test',
    models: undefined,
    capMicros,
    expiresAt,
    isOfUser: false,
    budget,
  });
  return { accountId, keyId };
}

describe('a key', () => {
  test('that is revoked admits nothing more, in any process, and charges no limit', async () => {
    const database = await createDatabase();
    const [lane, other] = [laneOn(database), laneOn(database)];
    const { accountId, keyId } = await keyOf(database, lane);
    const ask = { accountId, keyId, holdMicros: 1n, perMinute: 2, subject: `key:${keyId}` };
    expect(codeOf(await lane.appendCredit(admission(ask)))).toBe('ok');
    expect(await revokeApiKey(database.pool, keyId)).toBe(true);
    expect(await revokeApiKey(database.pool, keyId)).toBe(false);
    const tried = [lane, other, lane, other].map((each) => each.appendCredit(admission(ask)));
    expect((await Promise.all(tried)).map(codeOf)).toEqual(Array(4).fill('invalid_api_key'));
    await expectBooks(database);
  });

  test('expires at its time by the clock of the database', async () => {
    const { database, lane } = await databaseWithLane();
    const { keyId } = await keyOf(database, lane, undefined, new Date(Date.now() + 100_000));
    expect(codeOf(await lane.appendCredit(admission({ keyId })))).toBe('ok');
    await database.moveClock(101);
    expect(codeOf(await lane.appendCredit(admission({ keyId })))).toBe('invalid_api_key');
  });

  test('spends no more than its own cap, and what is released can be spent again', async () => {
    const { database, lane } = await databaseWithLane();
    const { accountId, keyId } = await keyOf(database, lane, 100n);
    const first = admission({ accountId, keyId, holdMicros: 60n });
    expect(codeOf(await lane.appendCredit(first))).toBe('ok');
    const second = { accountId, keyId, holdMicros: 60n };
    expect(await lane.appendCredit(admission(second))).toMatchObject({
      code: 'key_cap_reached',
      detail: { available: 40 },
    });
    await settle(lane, first.admit, 10n, 50n);
    expect(codeOf(await lane.appendCredit(admission(second)))).toBe('ok');
    await expectBooks(database);
  });
});

/** The clock stands, so that the day does not end in the middle of a test. */
const standAt = (database: TestDatabase, at: string) => database.asOwner((owner) => owner.query(clockAt(at)));

async function atNoon(): Promise<TestDatabase> {
  const database = await createDatabase();
  await standAt(database, '2026-11-30T12:00:00Z');
  return database;
}

describe('a budget', () => {
  const day: BudgetTerms = { micros: 100n, period: 'day' };

  test('is never exceeded by many simultaneous requests over two processes, whichever way their batches are written', async () => {
    const database = await createDatabase();
    await standAt(database, '2026-11-30T12:00:00Z');
    const lanes = [laneOn(database), laneOn(database)];
    const { accountId, keyId } = await keyOf(database, lanes[0]!, undefined, undefined, day);
    const other = await keyOf(database, lanes[0]!, undefined, undefined, { micros: 35n, period: 'month' });
    const ask = (at: number) =>
      admission({
        ...(at % 4 === 3 ? other : { accountId, keyId }),
        holdMicros: 7n,
        subject: `key:${at % 4}`,
      });
    const outcomes = await Promise.all(
      Array.from({ length: 400 }, async (_, at) => [
        at % 4 === 3 ? 'other' : 'own',
        codeOf(await lanes[at % 2]!.appendCredit(ask(at))),
      ]),
    );
    const count = (of: string, wanted: string) =>
      outcomes.filter(([name, code]) => name === of && code === wanted).length;
    expect([count('own', 'ok'), count('other', 'ok')]).toEqual([14, 5]);
    expect([count('own', 'key_budget_reached'), count('other', 'key_budget_reached')]).toEqual([286, 95]);
    await expectBooks(database);
  });

  test('starts anew at midnight UTC or on the first of the month, without what is still held, and says when', async () => {
    const { database, lane } = await databaseWithLane();
    await standAt(database, '2026-11-30T23:59:59Z');
    const daily = await keyOf(database, lane, undefined, undefined, day);
    const monthly = await keyOf(database, lane, undefined, undefined, { micros: 100n, period: 'month' });
    const held: Admission[] = [];
    for (const key of [daily, monthly]) {
      const { admit, ...command } = admission({ ...key, holdMicros: 60n });
      held.push(admit);
      expect(codeOf(await lane.appendCredit({ ...command, admit }))).toBe('ok');
      expect(await lane.appendCredit(admission({ ...key, holdMicros: 60n }))).toMatchObject({
        code: 'key_budget_reached',
        detail: { available: 40, budget_until: '2026-12-01T00:00:00Z' },
      });
    }
    await standAt(database, '2026-12-01T00:00:00Z');
    for (const key of [daily, monthly])
      expect(codeOf(await lane.appendCredit(admission({ ...key, holdMicros: 60n })))).toBe('ok');
    // the holds of the last period end, and change nothing in this one
    for (const admit of held) await settle(lane, admit, 20n, 40n);
    expect(await lane.appendCredit(admission({ ...daily, holdMicros: 41n }))).toMatchObject({
      detail: { available: 40, budget_until: '2026-12-02T00:00:00Z' },
    });
    expect(await lane.appendCredit(admission({ ...monthly, holdMicros: 41n }))).toMatchObject({
      detail: { available: 40, budget_until: '2027-01-01T00:00:00Z' },
    });
    await standAt(database, '2026-12-02T00:00:00Z');
    expect(codeOf(await lane.appendCredit(admission({ ...daily, holdMicros: 100n })))).toBe('ok');
    expect(codeOf(await lane.appendCredit(admission({ ...monthly, holdMicros: 41n })))).toBe(
      'key_budget_reached',
    );
    await expectBooks(database);
  });

  test('is not there twice where the clock steps back over midnight', async () => {
    const { database, lane } = await databaseWithLane();
    const key = await keyOf(database, lane, undefined, undefined, day);
    const codes: string[] = [];
    for (const at of ['11-30T23:59:59', '12-01T00:00:01', '11-30T23:59:58', '12-01T00:00:02']) {
      await standAt(database, `2026-${at}Z`);
      codes.push(codeOf(await lane.appendCredit(admission({ ...key, holdMicros: 100n }))));
    }
    expect(codes).toEqual(['ok', 'ok', 'key_budget_reached', 'key_budget_reached']);
  });

  test('counts the hold of a process that ended, and takes the excess back that this process returns', async () => {
    const { database, lane } = await databaseWithLane();
    await standAt(database, '2026-11-30T12:00:00Z');
    const key = await keyOf(database, lane, undefined, undefined, day);
    const { admit, ...command } = admission({ ...key, holdMicros: 100n });
    expect(codeOf(await lane.appendCredit({ ...command, admit }))).toBe('ok');
    await markHoldsStarted(database.pool, [admit.chatId]);
    const recovery = { processId: randomUUID(), silentSecs: 15 };
    await sendHeartbeat(database.pool, recovery.processId, 15);
    for (const at of ['12:00:06', '12:00:12', '12:00:18', '12:00:24']) {
      await standAt(database, `2026-11-30T${at}Z`);
      await sendHeartbeat(database.pool, recovery.processId, 15);
    }
    const { credit, ...captured } = settlement(admit, 100n, 0n);
    expect(
      codeOf(await lane.appendCredit({ ...captured, refused: {}, credit: { ...credit, recovery } })),
    ).toBe('ok');
    expect(codeOf(await lane.appendCredit(admission({ ...key, holdMicros: 1n })))).toBe('key_budget_reached');
    expect(codeOf(await settle(lane, admit, 10n, 90n))).toBe('gone');
    expect(codeOf(await lane.appendCredit(admission({ ...key, holdMicros: 90n })))).toBe('ok');
    expect((await findApiKeyById(database.db, key.keyId))?.budget).toMatchObject({ spentMicros: 100 });
  });

  test.each(['written', 'decided'])(
    'does not stop the settlement of a hold from before the clock was days ahead, which is %s',
    async (way) => {
      const { database, lane } = await databaseWithLane();
      const key = await keyOf(database, lane, undefined, undefined, day);
      const held: Admission[] = [];
      for (const [at, holdMicros] of [
        ['11-30T12:00:00', 60n],
        ['12-02T12:00:00', 1n],
        ['11-30T12:00:01', 1n],
      ] as const) {
        await standAt(database, `2026-${at}Z`);
        const { admit, ...command } = admission({ ...key, holdMicros });
        expect(codeOf(await lane.appendCredit({ ...command, admit }))).toBe('ok');
        held.push(admit);
      }
      const { credit, ...command } = settlement(held[0]!, 0n, 60n);
      const settled = { ...command, credit: { ...credit, isUnstarted: way === 'decided' } };
      expect(codeOf(await lane.appendCredit(settled))).toBe('ok');
      expect((await findApiKeyById(database.db, key.keyId))?.budget).toMatchObject({ spentMicros: 0 });
      for (const admit of held.slice(1)) expect(codeOf(await settle(lane, admit, 1n, 0n))).toBe('ok');
    },
  );
});

describe('a limit', () => {
  const sixty = { subject: 'key:9', perMinute: 60 };

  test('of sixty a minute admits exactly sixty of 500 simultaneous ones over two processes', async () => {
    const database = await atNoon();
    const lanes = [laneOn(database), laneOn(database)];
    const outcomes = await Promise.all(
      Array.from({ length: 500 }, (_, at) => (lanes[at % 2] as Lane).appendCredit(admission(sixty))),
    );
    expect(outcomes.filter(({ outcome }) => outcome === 'ok')).toHaveLength(60);
    const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
    // a flood of refusals is one event a minute
    expect(events.filter(({ type }) => type === 'chat_refused')).toHaveLength(1);
  });

  test('that several subjects share holds for all of them together, and charges none of what it refuses', async () => {
    const database = await atNoon();
    const lanes = [laneOn(database), laneOn(database)];
    const others = [
      { subject: 'free:account:1', perMinute: 60, perDay: 1_000 },
      { subject: 'free:ip:192.0.2.1', perMinute: 20, perDay: undefined },
    ];
    const outcomes = await Promise.all(
      Array.from({ length: 200 }, (_, at) =>
        (lanes[at % 2] as Lane).appendCredit(
          admission({ subject: `key:${at % 100}`, perMinute: 60, others }),
        ),
      ),
    );
    expect(outcomes.filter(({ outcome }) => outcome === 'ok')).toHaveLength(20);
    expect(outcomes.find(({ outcome }) => outcome !== 'ok')?.detail.full_subject).toBe('free:ip:192.0.2.1');
    const { rows } = await database.pool.query<{ hits: number; today: number }>(
      `select sum(cardinality(hits))::int as hits, sum(day_hits)::int as today from tollbook.rate_window
        group by case when subject like 'key:%' then 'key' else subject end`,
    );
    expect(rows).toEqual(Array.from({ length: 3 }, () => ({ hits: 20, today: 20 })));
  });

  test('counts refused requests exactly, over two processes, and none of those that it refuses itself', async () => {
    const database = await atNoon();
    const lanes = [laneOn(database), laneOn(database)];
    const refused = { subject: 'key:9', perMinute: 30, isRefused: true };
    const outcomes = await Promise.all(
      Array.from({ length: 200 }, (_, at) => (lanes[at % 2] as Lane).appendCredit(admission(refused))),
    );
    const codes = outcomes.map(codeOf);
    expect(codes.filter((code) => code === 'counted')).toHaveLength(30);
    expect(codes.filter((code) => code === 'rate_limit_exceeded')).toHaveLength(170);
    const { rows } = await database.pool.query(
      'select cardinality(hits) as hits, day_hits from tollbook.rate_window',
    );
    expect(rows).toEqual([{ hits: 30, day_hits: 30 }]);
  });

  test('lets one more pass a minute after the first, and names the wait until then', async () => {
    const { database, lane } = await databaseWithLane();
    const three = { subject: 'key:9', perMinute: 3 };
    for (const at of ['12:00:00', '12:00:20', '12:00:40']) {
      await standAt(database, `2026-11-30T${at}Z`);
      expect(codeOf(await lane.appendCredit(admission(three)))).toBe('ok');
    }
    const refused = await lane.appendCredit(admission(three));
    expect(codeOf(refused)).toBe('rate_limit_exceeded');
    expect(refused.detail.retry_ms).toBe(20_000);
    await standAt(database, '2026-11-30T12:01:00Z');
    expect(codeOf(await lane.appendCredit(admission(three)))).toBe('ok');
    expect(codeOf(await lane.appendCredit(admission(three)))).toBe('rate_limit_exceeded');
  });

  test('by day ends with the UTC day', async () => {
    const database = await atNoon();
    const lane = laneOn(database);
    const daily = { subject: 'ip:192.0.2.1', perMinute: 10, perDay: 5 };
    for (let tried = 0; tried < 5; tried++)
      expect(codeOf(await lane.appendCredit(admission(daily)))).toBe('ok');
    const refused = await lane.appendCredit(admission(daily));
    expect(codeOf(refused)).toBe('daily_quota_exceeded');
    expect(refused.detail.retry_ms).toBe(12 * 3_600_000);
    await standAt(database, '2026-11-30T23:59:59.999Z');
    expect(codeOf(await lane.appendCredit(admission(daily)))).toBe('daily_quota_exceeded');
    await standAt(database, '2026-12-01T00:00:00Z');
    expect(codeOf(await lane.appendCredit(admission(daily)))).toBe('ok');
  });

  test('that refuses tells where every limit stands, and when it admits again itself', async () => {
    const { database, lane } = await databaseWithLane();
    const both = { subject: 'ip:192.0.2.1', perMinute: 2, perDay: 5 };
    for (const at of ['12:00:00', '12:00:10']) {
      await standAt(database, `2026-11-30T${at}Z`);
      expect((await lane.appendCredit(admission(both))).outcome).toBe('ok');
    }
    const byMinute = await lane.appendCredit(admission(both));
    expect(byMinute).toMatchObject({
      code: 'rate_limit_exceeded',
      detail: { remaining: 0, per_minute: 2, remaining_today: 3, per_day: 5 },
    });
    const { retry_ms, reset_ms, reset_today_ms } = byMinute.detail;
    expect([retry_ms, reset_ms, reset_today_ms]).toEqual([50_000, 50_000, 12 * 3_600_000 - 10_000]);
    // a limit that was lowered is full until so many are old enough that one has room
    const lowered = await lane.appendCredit(admission({ ...both, perMinute: 1 }));
    expect([lowered.detail.retry_ms, lowered.detail.reset_ms]).toEqual([60_000, 60_000]);
    const byDay = await lane.appendCredit(admission({ ...both, perMinute: 9, perDay: 2 }));
    expect(byDay).toMatchObject({
      code: 'daily_quota_exceeded',
      detail: { remaining: 7, per_minute: 9, remaining_today: 0, per_day: 2 },
    });
    expect(byDay.detail.retry_ms).toBe(byDay.detail.reset_today_ms);
    expect(byDay.detail.reset_ms).toBe(50_000);
  });

  test('is charged for what credit refuses, unless the caller will ask again for less', async () => {
    const { database, lane } = await databaseWithLane();
    const accountId = await fund(database, lane, 1n);
    const ask = async (change: Partial<Admission>) =>
      codeOf(await lane.appendCredit(admission({ subject: 'key:4', perMinute: 1, accountId, ...change })));
    expect(await ask({ holdMicros: 2n, leastMicros: 1n })).toBe('insufficient_funds');
    expect(await ask({ holdMicros: 2n })).toBe('insufficient_funds');
    expect(await ask({ holdMicros: 1n })).toBe('rate_limit_exceeded');
  });
});

async function refusalScene() {
  const { database, lane } = await databaseWithLane();
  const told = async () =>
    (await expectBooks(database)).flatMap((event) =>
      event.type === 'chat_refused' ? [event.data.code] : [],
    );
  return { database, lane, told, ...(await keyOf(database, lane, 100n)) };
}

describe('a refusal', () => {
  test.each([
    ['invalid_api_key', { keyId: 99 }],
    ['insufficient_funds', { holdMicros: 2_000n, keyId: undefined }],
    ['key_cap_reached', { holdMicros: 200n }],
    ['rate_limit_exceeded', { perMinute: 0 }],
    ['daily_quota_exceeded', { perDay: 0 }],
  ])('for %s is written down once a minute, however many there are', async (code, asked) => {
    const { database, lane, told, accountId, keyId } = await refusalScene();
    const flood = async () => {
      const asking = { subject: 'key:1', accountId, keyId, ...asked };
      const outcomes = await Promise.all(
        Array.from({ length: 20 }, () => lane.appendCredit(admission(asking))),
      );
      expect(new Set(outcomes.map(codeOf))).toEqual(new Set([code]));
    };
    for (const at of ['12:00:00', '12:00:59']) {
      await standAt(database, `2026-11-30T${at}Z`);
      await flood();
    }
    expect(await told()).toEqual([code]);
    await standAt(database, '2026-11-30T12:01:01Z');
    await flood();
    expect(await told()).toEqual([code, code]);
  });

  test('of one subject says nothing of another', async () => {
    const { lane, told, accountId } = await refusalScene();
    for (const subject of ['key:1', 'key:2'])
      await lane.appendCredit(admission({ accountId, subject, holdMicros: 2_000n }));
    expect(await told()).toHaveLength(2);
  });

  test('of one who will ask for less is not written down, and the last of it is', async () => {
    const { lane, told, accountId } = await refusalScene();
    const ask = (holdMicros: bigint, leastMicros?: bigint) =>
      lane.appendCredit(admission({ accountId, holdMicros, leastMicros }));
    expect(codeOf(await ask(2_000n, 1_000n))).toBe('insufficient_funds');
    expect(await told()).toEqual([]);
    expect(codeOf(await ask(2_000n, 1_001n))).toBe('insufficient_funds');
    expect(await told()).toEqual(['insufficient_funds']);
  });
});
