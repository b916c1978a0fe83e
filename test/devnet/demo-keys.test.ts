import { expect, test } from 'vitest';
import { demoKeys } from '../../src/devnet/demo-keys.ts';
import { apiKeyHash } from '../../src/accounts/rules/api-key.ts';
import { revokeKey } from '../../src/accounts/use-cases/api-keys.ts';
import { expireCredit } from '../../src/accounts/use-cases/credit/credit.ts';
import { findApiKey } from '../../src/accounts/store/api-keys.ts';
import { findAccount } from '../../src/accounts/store/credit.ts';
import { expectBooks, laneOn } from '../support/credit.ts';
import { createDatabase } from '../support/database.ts';

async function ledgerWithKeys() {
  const database = await createDatabase();
  const ledger = { ...database, lane: laneOn(database) };
  const keys = await demoKeys(ledger);
  const keyOf = async (key: string) => {
    const found = await findApiKey(database.db, apiKeyHash(key));
    if (!found) throw new Error('no such key');
    return found;
  };
  const balanceOf = async (key: string) =>
    (await findAccount(database.db, { accountId: (await keyOf(key)).accountId }))?.balanceMicros;
  return { database, ledger, keys, keyOf, balanceOf };
}

test('one demo key has credit, one has none, and one has expired', async () => {
  const { database, keys, keyOf, balanceOf } = await ledgerWithKeys();
  expect(await balanceOf(keys.api_key_funded)).toBe(1_000_000_000);
  expect(await balanceOf(keys.api_key_empty)).toBe(0);
  expect((await keyOf(keys.api_key_funded)).expiresAt).toBeUndefined();
  expect((await keyOf(keys.api_key_expired)).expiresAt?.getTime()).toBeLessThan(Date.now());
  await expectBooks(database);
});

test('a second start keeps the demo keys, creates missing ones, and replaces spent credit', async () => {
  const { database, ledger, keys, keyOf, balanceOf } = await ledgerWithKeys();
  expect(await demoKeys(ledger, keys)).toEqual(keys);
  const { accountId, keyId } = await keyOf(keys.api_key_funded);
  await expireCredit(ledger, accountId, 950_000_000n);
  await revokeKey(ledger, { keyId });
  const later = await demoKeys(ledger, { ...keys, api_key_empty: undefined });
  expect(await balanceOf(later.api_key_funded)).toBe(1_050_000_000);
  expect(later.api_key_expired).toBe(keys.api_key_expired);
  expect(later.api_key_funded).not.toBe(keys.api_key_funded);
  expect(later.api_key_empty).not.toBe(keys.api_key_empty);
  await expectBooks(database);
});
