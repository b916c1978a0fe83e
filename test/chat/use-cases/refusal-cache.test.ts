import { describe, expect, test } from 'vitest';
import { cacheRefusals } from '../../../src/chat/use-cases/refusal-cache.ts';
import type { Admission } from '../../../src/ledger/store/append-batch.ts';
import type { Lane } from '../../../src/ledger/store/lane.ts';
import { admission, codeOf, databaseWithLane } from '../../support/credit.ts';
import { ask, freeModel, startChatGateway } from '../../support/chat-gateway.ts';

/** A lane that counts what reaches it, behind a refusal cache whose clock the test advances. */
async function setUp() {
  const { database, lane } = await databaseWithLane();
  let appended = 0;
  let nowMs = 1_000;
  const counted: Lane = {
    append: (...of) => lane.append(...of),
    appendCredit(...of) {
      appended++;
      return lane.appendCredit(...of);
    },
    halt: (found) => lane.halt(found),
    refresh: () => lane.refresh(),
    state: lane.state,
    close: () => lane.close(),
  };
  const caching = cacheRefusals(counted, () => nowMs);
  return {
    database,
    lane,
    caching,
    admit: (change: Partial<Admission>) => caching.appendCredit(admission(change)),
    appended: () => appended,
    pass: (ms: number) => {
      nowMs += ms;
    },
  };
}

describe('a rate limit that is used up', () => {
  const one = { subject: 'ip:192.0.2.1', perMinute: 1 };

  test('refuses repeated requests without the lane, with a falling wait', async () => {
    const { admit, appended, pass } = await setUp();
    expect(codeOf(await admit(one))).toBe('ok');
    const first = await admit(one);
    expect(appended()).toBe(2);
    for (let passed = 1; passed <= 200; passed++) {
      pass(10);
      const refused = await admit(one);
      expect(codeOf(refused)).toBe('rate_limit_exceeded');
      expect(refused.detail.retry_ms).toBe((first.detail.retry_ms ?? 0) - 10 * passed);
      expect(refused.detail.reset_ms).toBe(refused.detail.retry_ms);
    }
    expect(appended()).toBe(2);
  });

  test('admits exactly one more request when one is left', async () => {
    const { database, admit, appended, pass } = await setUp();
    expect(codeOf(await admit(one))).toBe('ok');
    const retryMs = (await admit(one)).detail.retry_ms ?? 0;
    pass(retryMs - 1);
    expect(codeOf(await admit(one))).toBe('rate_limit_exceeded');
    expect(appended()).toBe(2);
    pass(1);
    await database.moveClock(60);
    const outcomes = await Promise.all(Array.from({ length: 10 }, () => admit(one)));
    expect(outcomes.map(codeOf).toSorted()).toEqual(['ok', ...Array(9).fill('rate_limit_exceeded')]);
  });

  test('by day is checked in the ledger once a minute', async () => {
    const { admit, appended, pass } = await setUp();
    const daily = { ...one, perMinute: 9, perDay: 0 };
    const first = await admit(daily);
    pass(59_999);
    const second = await admit(daily);
    expect([codeOf(second), appended()]).toEqual(['daily_quota_exceeded', 1]);
    expect(second.detail).toMatchObject({
      retry_ms: (first.detail.retry_ms ?? 0) - 59_999,
      reset_today_ms: (first.detail.reset_today_ms ?? 0) - 59_999,
      remaining: 9,
    });
    pass(1);
    await admit(daily);
    expect(appended()).toBe(2);
  });

  test('does not apply to another caller, or after a reload changed it', async () => {
    const { admit } = await setUp();
    await admit(one);
    expect(codeOf(await admit(one))).toBe('rate_limit_exceeded');
    expect(codeOf(await admit({ ...one, subject: 'ip:192.0.2.2' }))).toBe('ok');
    expect(codeOf(await admit({ ...one, perMinute: 2 }))).toBe('ok');
  });

  test('refuses repeated requests without appending to the ledger', async () => {
    const gateway = await startChatGateway({ constants: { chat: { anonymousPerMinute: 2 } } });
    const batches = async () => {
      const { rows } = await gateway.database.pool.query<{ sum: string }>(
        'select sum(last) as sum from (select max(batch_no) as last from tollbook.lane_batch group by sender_hash) sender',
      );
      return Number(rows[0]?.sum);
    };
    const post = () => gateway.post(ask('x', freeModel));
    for (const status of [200, 200, 429]) expect((await post()).status).toBe(status);
    const before = await batches();
    const answers = await Promise.all(Array.from({ length: 300 }, post));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([429]));
    // settlements and the look-up of every five seconds make batches too
    expect((await batches()) - before).toBeLessThan(60);
    expect(Number(answers[0]?.headers.get('retry-after'))).toBeGreaterThan(30);
  });
});
