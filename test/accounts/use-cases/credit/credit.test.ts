import { describe, expect, test } from 'vitest';
import {
  expireCredit,
  grantCredit,
  openCreditAccount,
} from '../../../../src/accounts/use-cases/credit/credit.ts';
import type { Lane } from '../../../../src/ledger/store/lane.ts';
import { findAccount, listAccounts } from '../../../../src/accounts/store/credit.ts';
import { admission, expectBooks, fund, laneOn, databaseWithLane } from '../../../support/credit.ts';
import { createDatabase } from '../../../support/database.ts';

const moved = (balanceMicros: bigint) => ({ kind: 'moved', balanceMicros });

describe('an account', () => {
  test('opened concurrently in two processes is one account with one event', async () => {
    const database = await createDatabase();
    const ledgers = [0, 1].map(() => ({ ...database, lane: laneOn(database) }));
    const ids = await Promise.all(
      Array.from({ length: 40 }, (_, at) => openCreditAccount(ledgers[at % 2]!, `user:${at % 2}`)),
    );
    expect(new Set(ids).size).toBe(2);
    expect(await listAccounts(database.db)).toHaveLength(2);
    const events = await expectBooks(database);
    expect(events.map(({ type }) => type)).toEqual(['credit_account_opened', 'credit_account_opened']);
  });

  test('that exists is opened again without another event', async () => {
    const database = await createDatabase();
    const ledger = { ...database, lane: laneOn(database) };
    const accountId = await openCreditAccount(ledger, 'alice');
    expect(await openCreditAccount(ledger, 'alice')).toBe(accountId);
    expect(await expectBooks(database)).toHaveLength(1);
  });

  test.each(['', 'two words', 'a/b', 'ünique', 'x'.repeat(129), 'line\n'])(
    'cannot have the name %j',
    async (name) => {
      const database = await createDatabase();
      const ledger = { ...database, lane: laneOn(database) };
      await expect(openCreditAccount(ledger, name)).rejects.toThrow(RangeError);
    },
  );
});

describe('credit', () => {
  test("is granted and expired to the micro, and the operator's token is recorded", async () => {
    const { database, lane } = await databaseWithLane();
    const accountId = await openCreditAccount({ ...database, lane }, 'alice');
    expect(await grantCredit({ ...database, lane }, accountId, 5_000_001n, { tokenId: 7 })).toEqual(
      moved(5_000_001n),
    );
    expect(await expireCredit({ lane }, accountId, 5_000_000n, { tokenId: 8 })).toEqual(moved(1n));
    expect(await findAccount(database.db, { accountId })).toMatchObject({ balanceMicros: 1 });
    const events = await expectBooks(database);
    expect(events.slice(1).map(({ type, data }) => [type, data])).toEqual([
      ['credit_granted', { account_id: accountId, amount_micros: '5000001', token_id: 7 }],
      ['credit_expired', { account_id: accountId, amount_micros: '5000000', token_id: 8 }],
    ]);
  });

  test('cannot be expired while it is held, or beyond the balance', async () => {
    const { database, lane } = await databaseWithLane();
    const accountId = await fund(database, lane, 100n);
    await lane.appendCredit(admission({ accountId, holdMicros: 70n }));
    expect(await expireCredit({ lane }, accountId, 31n)).toEqual({ kind: 'not_allowed' });
    expect(await expireCredit({ lane }, accountId, 30n)).toEqual(moved(0n));
    expect(await expireCredit({ lane }, accountId, 1n)).toEqual({ kind: 'not_allowed' });
    const events = await expectBooks(database);
    expect(events.filter(({ type }) => type === 'credit_expired')).toHaveLength(1);
  });

  test('of 100 is expired in tens exactly ten times by 30 concurrent requests in two processes', async () => {
    const database = await createDatabase();
    const lanes = [laneOn(database), laneOn(database)];
    const accountId = await fund(database, lanes[0]!, 100n);
    const left = await Promise.all(
      Array.from({ length: 30 }, (_, at) => expireCredit({ lane: lanes[at % 2]! }, accountId, 10n)),
    );
    expect(left.filter(({ kind }) => kind === 'moved')).toHaveLength(10);
    expect(await findAccount(database.db, { accountId })).toMatchObject({ balanceMicros: 0 });
    await expectBooks(database);
  });

  test('never exceeds the maximum balance', async () => {
    const { database, lane } = await databaseWithLane();
    const most = BigInt(Number.MAX_SAFE_INTEGER);
    const accountId = await fund(database, lane, most - 1n);
    // what is held or used comes to the same
    await lane.appendCredit(admission({ accountId, holdMicros: 100n }));
    expect(await grantCredit({ ...database, lane }, accountId, 2n)).toEqual({ kind: 'not_allowed' });
    expect(await grantCredit({ ...database, lane }, accountId, 1n)).toEqual(moved(most - 100n));
    await expect(grantCredit({ ...database, lane }, accountId, most + 1n)).rejects.toThrow(RangeError);
    await expectBooks(database);
  });

  test('moves once per idempotency key, and repetitions have the same result', async () => {
    const database = await createDatabase();
    const lanes = [laneOn(database), laneOn(database)];
    const accountId = await fund(database, lanes[0]!, 100n);
    const other = await fund(database, lanes[0]!, 0n);
    const requestId = 'one-grant-and-no-more';
    const granted = await Promise.all(
      Array.from({ length: 20 }, (_, at) =>
        grantCredit({ ...database, lane: lanes[at % 2]! }, accountId, 7n, { requestId }),
      ),
    );
    expect(granted).toEqual(Array(20).fill(moved(107n)));
    const [lane] = lanes as [Lane, Lane];
    expect(await expireCredit({ lane }, accountId, 50n, { requestId: `${requestId}-2` })).toEqual(moved(57n));
    // as it was then, not as it is now
    expect(await grantCredit({ ...database, lane }, accountId, 7n, { requestId })).toEqual(moved(107n));
    expect(await expireCredit({ lane }, accountId, 50n, { requestId: `${requestId}-2` })).toEqual(moved(57n));
    for (const taken of [
      grantCredit({ ...database, lane }, accountId, 8n, { requestId }),
      grantCredit({ ...database, lane }, other, 7n, { requestId }),
      expireCredit({ lane }, accountId, 7n, { requestId }),
    ])
      expect(await taken).toEqual({ kind: 'request_id_taken' });
    const events = await expectBooks(database);
    expect(events.filter(({ type }) => type === 'credit_granted')).toHaveLength(2);
    expect(events.filter(({ type }) => type === 'credit_expired')).toHaveLength(1);
  });

  test('that could not be moved under an idempotency key can be moved under it later', async () => {
    const { database, lane } = await databaseWithLane();
    const accountId = await fund(database, lane, 5n);
    const asked = { requestId: 'expired-when-granted' };
    expect(await expireCredit({ lane }, accountId, 6n, asked)).toEqual({ kind: 'not_allowed' });
    await grantCredit({ ...database, lane }, accountId, 1n);
    expect(await expireCredit({ lane }, accountId, 6n, asked)).toEqual(moved(0n));
    await expectBooks(database);
  });

  test('is moved only in an existing account, by an amount above zero', async () => {
    const { database, lane } = await databaseWithLane();
    expect(await grantCredit({ ...database, lane }, 12_345, 1n)).toEqual({ kind: 'not_allowed' });
    await expect(grantCredit({ ...database, lane }, 1, 0n)).rejects.toThrow(RangeError);
    await expect(expireCredit({ lane }, 1, -1n)).rejects.toThrow(RangeError);
    expect(await expectBooks(database)).toEqual([]);
  });
});
