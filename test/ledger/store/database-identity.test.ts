import { expect, test } from 'vitest';
import { readIdentity } from '../../../src/ledger/store/database-identity.ts';
import { createDatabase } from '../../support/database.ts';

test('where a provider keeps the system identifier of its server to itself, a database is known by the rest', async () => {
  const { pool, asOwner } = await createDatabase();
  const whole = await readIdentity(pool);
  expect(whole.systemIdentifier).toMatch(/^\d+$/);
  await asOwner((owner) => owner.query('revoke execute on function pg_control_system() from public'));
  expect(await readIdentity(pool)).toEqual({ ...whole, systemIdentifier: undefined });
});
