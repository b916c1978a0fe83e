import type { OperatorScope } from '../../src/base/values/operator-scope.ts';
import { issueOperatorToken } from '../../src/accounts/use-cases/operator-tokens.ts';
import { writerRole } from '../../src/ledger/store/database.ts';
import { openLane } from '../../src/ledger/store/lane.ts';
import type { TestDatabase } from './database.ts';

/** The header of a new operator token with these scopes. */
export async function operatorOf({ url, pool, db }: TestDatabase, scopes: readonly OperatorScope[]) {
  const lane = openLane({ url, role: writerRole });
  try {
    const { token } = await issueOperatorToken({ pool, db, lane }, { name: 'ops', scopes });
    return { authorization: `Bearer ${token}` };
  } finally {
    await lane.close();
  }
}
