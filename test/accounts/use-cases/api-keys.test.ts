import { describe, expect, test } from 'vitest';
import { isApiKey } from '../../../src/accounts/rules/api-key.ts';
import { issueApiKey, revokeKey } from '../../../src/accounts/use-cases/api-keys.ts';
import { createUserApiKeyOnce } from '../../../src/accounts/use-cases/user-api-keys.ts';
import { openCreditAccount } from '../../../src/accounts/use-cases/credit/credit.ts';
import { listApiKeys, revokeApiKey } from '../../../src/accounts/store/api-keys.ts';
import { admission, codeOf, expectBooks, laneOn } from '../../support/credit.ts';
import { createDatabase } from '../../support/database.ts';
import { allEvents } from '../../support/invariants.ts';

async function withAccount() {
  const database = await createDatabase();
  const ledger = { ...database, lane: laneOn(database) };
  return { database, ledger, accountId: await openCreditAccount(ledger, 'alice') };
}

describe('an issued key', () => {
  test('is stored as requested, and recorded in the ledger by its id only', async () => {
    const { database, ledger, accountId } = await withAccount();
    const expiresAt = new Date('2031-02-03T04:05:06.789Z');
    const asked = {
      name: 'my bot',
      models: ['small', 'large'],
      capMicros: 5_000_001n,
      expiresAt,
      tokenId: 3,
    };
    const { keyId, key } = await issueApiKey(ledger, { accountId, ...asked });
    expect(isApiKey(key)).toBe(true);
    expect(await listApiKeys(database.db)).toMatchObject([
      {
        keyId,
        accountId,
        account: 'alice',
        name: 'my bot',
        models: ['small', 'large'],
        capMicros: 5_000_001,
        spentMicros: 0,
        expiresAt,
        revokedAt: undefined,
        lastUsedAt: undefined,
      },
    ]);
    // beside its hash nothing of the key is stored, in its row or in an event
    const { rows } = await database.pool.query<{ row: object }>(
      'select row_to_json(api_key) as row from tollbook.api_key',
    );
    const stored = JSON.stringify([rows, (await allEvents(database.db)).map(({ data }) => data)]);
    expect(stored).toContain('my bot');
    expect(stored).not.toContain(key.slice(7, 13));
    const created = (await allEvents(database.db)).at(-1);
    expect(created).toMatchObject({
      stream: `key:${keyId}`,
      type: 'key_created',
      data: { key_id: keyId, account_id: accountId, token_id: 3 },
    });
  });

  test('is stored only as a hash', async () => {
    const { database, ledger, accountId } = await withAccount();
    const { key } = await issueApiKey(ledger, { accountId, name: 'a' });
    const { rows } = await database.pool.query<{ row: string }>(
      `select row_to_json(k)::text as row from tollbook.api_key k
       union all select tollbook.leaf_text(event) from tollbook.event
       union all select answer::text from tollbook.lane_batch`,
    );
    expect(rows.length).toBeGreaterThan(3);
    expect(key).toMatch(/^sk-net-\w{20}/);
    // neither the first characters after its prefix nor the others
    for (const { row } of rows)
      for (const part of [key.slice(7, 13), key.slice(13)]) expect(row).not.toContain(part);
  });

  test('is different from every other key', async () => {
    const { ledger, accountId } = await withAccount();
    const issued = await Promise.all(
      Array.from({ length: 20 }, () => issueApiKey(ledger, { accountId, name: 'a' })),
    );
    expect(new Set(issued.map(({ key }) => key)).size).toBe(20);
    expect(new Set(issued.map(({ keyId }) => keyId)).size).toBe(20);
  });
});

test('a form’s key whose process ended before it was recorded is recorded, once, before it is shown', async () => {
  const { database, ledger, accountId } = await withAccount();
  const user = { sessionId: 'a session', userId: 'a user', accountId };
  const form = { id: 'a form', secret: 'a secret' };
  const gone = {
    ...ledger,
    lane: { ...ledger.lane, append: () => Promise.reject(new Error('the process ended')) },
  };
  await createUserApiKeyOnce(gone, user, { name: 'a' }, form).catch(() => undefined);
  const again = () => createUserApiKeyOnce(ledger, user, { name: 'a' }, form);
  const [first, second] = await Promise.all([again(), again()]);
  expect(first).toMatchObject({ kind: 'repeated', key: expect.stringMatching(/^sk-net-/) });
  expect(second).toEqual(first);
  expect((await allEvents(database.db)).filter(({ type }) => type === 'key_created')).toHaveLength(1);
  expect(await listApiKeys(database.db)).toHaveLength(1);
});

describe('a revoked key', () => {
  test('has one event and admits nothing after concurrent revocations in two processes', async () => {
    const { database, ledger, accountId } = await withAccount();
    const other = { ...database, lane: laneOn(database) };
    const { keyId } = await issueApiKey(ledger, { accountId, name: 'a' });
    const done = await Promise.all(
      Array.from({ length: 10 }, (_, at) => revokeKey(at % 2 ? ledger : other, { keyId, tokenId: at })),
    );
    expect(done).toEqual(Array(10).fill(true));
    expect(await revokeKey(ledger, { keyId })).toBe(true);
    expect(codeOf(await ledger.lane.appendCredit(admission({ keyId })))).toBe('invalid_api_key');
    const events = await expectBooks(database);
    expect(events.filter(({ stream }) => stream === `key:${keyId}`).map(({ type }) => type)).toEqual([
      'key_created',
      'key_revoked',
    ]);
  });

  test('is recorded by the next revocation when the first process ended before recording it', async () => {
    const { database, ledger, accountId } = await withAccount();
    const { keyId } = await issueApiKey(ledger, { accountId, name: 'a' });
    await revokeApiKey(database.pool, keyId);
    expect(await revokeKey(ledger, { keyId })).toBe(true);
    expect((await allEvents(database.db)).at(-1)).toMatchObject({
      type: 'key_revoked',
      stream: `key:${keyId}`,
    });
  });

  test('must exist and belong to the account that revokes it', async () => {
    const { database, ledger, accountId } = await withAccount();
    const { keyId } = await issueApiKey(ledger, { accountId, name: 'a' });
    const stranger = await openCreditAccount(ledger, 'mallory');
    expect(await revokeKey(ledger, { keyId, accountId: stranger })).toBe(false);
    expect(await revokeKey(ledger, { keyId: keyId + 1 })).toBe(false);
    expect((await listApiKeys(database.db))[0]?.revokedAt).toBeUndefined();
    expect(await revokeKey(ledger, { keyId, accountId })).toBe(true);
  });
});

test('keys are listed by account and in pages, oldest first', async () => {
  const { database, ledger, accountId } = await withAccount();
  const other = await openCreditAccount(ledger, 'bob');
  const ids: number[] = [];
  for (const of of [accountId, other, accountId])
    ids.push((await issueApiKey(ledger, { accountId: of, name: 'a' })).keyId);
  const listed = async (asked: Parameters<typeof listApiKeys>[1]) =>
    (await listApiKeys(database.db, asked)).map(({ keyId }) => keyId);
  expect(await listed({})).toEqual(ids);
  expect(await listed({ accountId })).toEqual([ids[0], ids[2]]);
  expect(await listed({ after: ids[0]!, limit: 1 })).toEqual([ids[1]]);
});
