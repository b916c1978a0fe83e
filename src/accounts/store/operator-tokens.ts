import { sql } from 'kysely';
import type pg from 'pg';
import type { OperatorScope } from '../../base/values/operator-scope.ts';
import type { LedgerDatabase } from '../../ledger/store/database.ts';
import { withoutNulls } from '../../ledger/store/expressions.ts';
import { callFunction } from '../../ledger/store/functions.ts';

export interface OperatorToken {
  readonly tokenId: number;
  readonly name: string;
  readonly scopes: readonly OperatorScope[];
  /** The names of the credit accounts that its scopes are limited to; undefined: all. */
  readonly accounts: readonly string[] | undefined;
  readonly createdAt: Date;
  readonly expiresAt: Date | undefined;
  readonly revokedAt: Date | undefined;
}

/** Stores a token by its hash; returns its id. */
export function createToken(
  pool: pg.Pool,
  token: Pick<OperatorToken, 'name' | 'scopes' | 'accounts' | 'expiresAt'> & { readonly hash: Buffer },
): Promise<number> {
  const { name, scopes, accounts, hash, expiresAt } = token;
  return callFunction(pool, 'create_operator_token', [
    name,
    scopes,
    hash,
    expiresAt ?? null,
    accounts ?? null,
  ]);
}

/** False if there is no such token, or if it was revoked before. */
export function revokeToken(pool: pg.Pool, tokenId: number): Promise<boolean> {
  return callFunction(pool, 'revoke_operator_token', [tokenId]);
}

/** The token of this hash, if it holds now: not revoked, not expired by the database's clock. */
export async function findValidToken(db: LedgerDatabase, hash: Buffer): Promise<OperatorToken | undefined> {
  const row = await tokens(db)
    .where('hash', '=', hash)
    .where('revoked_at', 'is', null)
    .where((where) =>
      where.or([where('expires_at', 'is', null), where('expires_at', '>', sql<Date>`tollbook.clock()`)]),
    )
    .executeTakeFirst();
  return row && withoutNulls(row);
}

export async function listTokens(db: LedgerDatabase): Promise<OperatorToken[]> {
  const rows = await tokens(db).orderBy('token_id').execute();
  return rows.map(withoutNulls);
}

function tokens(db: LedgerDatabase) {
  return db
    .selectFrom('tollbook.operator_token')
    .select([
      'token_id as tokenId',
      'name',
      'scopes',
      'accounts',
      'created_at as createdAt',
      'expires_at as expiresAt',
      'revoked_at as revokedAt',
    ])
    .$narrowType<{ scopes: OperatorScope[] }>();
}
