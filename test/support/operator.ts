import type { OperatorScope } from '../../src/domain/identity/operator-scope.ts';
import { issueOperatorToken } from '../../src/identity/operator-tokens.ts';
import { writerRole } from '../../src/store/database.ts';
import { openLane } from '../../src/store/lane.ts';
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
