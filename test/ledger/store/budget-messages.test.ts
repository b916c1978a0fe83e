import { describe, expect, test } from 'vitest';
import { takeBudgetMessages } from '../../../src/accounts/store/budget-alerts.ts';
import { returnMessage } from '../../../src/ledger/store/tasks.ts';
import { fund, laneOn } from '../../support/credit.ts';
import { createDatabase } from '../../support/database.ts';

describe('a message about a budget', () => {
  const insert = `insert into tollbook.task (kind, queue, key, created_at, ok_at, due_at, takes, payload)
    select 'budget_message', 'webhook', gen_random_uuid(), tollbook.clock(), tollbook.clock(), tollbook.clock(), tries,
      json_build_object('account_id', $1::bigint, 'key_id', 1, 'percent', 50, 'used', 1, 'budget', 2, 'budget_period', 'day',
        'budget_from', '2026-11-30')
    from unnest($2::int[]) as tries`;

  test('is sent by one process at a time, and again if that one ended', async () => {
    const database = await createDatabase();
    const account = await fund(database, laneOn(database), 0n);
    await database.asOwner((owner) => owner.query(insert, [account, [0]]));
    const take = async (): Promise<number> => (await takeBudgetMessages(database.pool, 'webhook', 16)).length;
    expect(await take()).toBe(1);
    // while its receiver takes its time
    await database.moveClock(60);
    expect(await take()).toBe(0);
    await database.moveClock(301);
    const [message] = await takeBudgetMessages(database.pool, 'webhook', 16);
    expect(message?.tries).toBe(2);
    // a failure is repeated sooner
    await returnMessage(database.pool, message!.message_id);
    await database.moveClock(310);
    expect(await take()).toBe(1);
  });

  test('is not held up by those of an address that never answers', async () => {
    const database = await createDatabase();
    const account = await fund(database, laneOn(database), 0n);
    const tries = [...Array<number>(16).fill(3), 0];
    await database.asOwner((owner) => owner.query(insert, [account, tries]));
    const taken = await takeBudgetMessages(database.pool, 'webhook', 16);
    expect(taken.map((message) => message.tries)).toContain(1);
  });
});
