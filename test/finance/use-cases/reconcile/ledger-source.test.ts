import { expect, test } from 'vitest';
import { ledgerInDatabase } from '../../../../src/finance/use-cases/reconcile/ledger-source.ts';
import { createDatabase } from '../../../support/database.ts';
import { appendAll, sealAll, testVerifier } from '../../../support/log.ts';

const event = { type: 'operator_token_revoked', data: { token_id: 1 } } as const;

test('a reconciliation waits until an event that was recorded just before it is sealed, and does without where no gateway seals it', async () => {
  const database = await createDatabase();
  await appendAll(database, [{ stream: 'operator:tokens', event }]);
  await sealAll(database);
  await appendAll(database, [{ stream: 'operator:tokens', event }]);
  const waiting = ledgerInDatabase(database.pool, testVerifier, undefined);
  await sealAll(database);
  expect((await waiting).size).toBe(2);
  await appendAll(database, [{ stream: 'operator:tokens', event }]);
  expect((await ledgerInDatabase(database.pool, testVerifier, undefined)).size).toBe(2);
});
