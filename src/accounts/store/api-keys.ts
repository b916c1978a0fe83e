import type pg from 'pg';
import { sql } from 'kysely';
import { type LedgerDatabase, queriesOn } from '../../ledger/store/database.ts';
import { withoutNulls } from '../../ledger/store/expressions.ts';
import { callFunction } from '../../ledger/store/functions.ts';

export const budgetPeriods = ['day', 'month'] as const;
export type BudgetPeriod = (typeof budgetPeriods)[number];

/** What a key may spend in each UTC day or month. */
export interface BudgetTerms {
  readonly micros: bigint;
  readonly period: BudgetPeriod;
}

/** A budget in its current period. Micros. */
export interface KeyBudget {
  readonly micros: number;
  readonly period: BudgetPeriod;
  /** Holds included. */
  readonly spentMicros: number;
  /** When it starts anew. */
  readonly until: Date;
}

export interface ApiKey {
  readonly keyId: number;
  readonly accountId: number;
  readonly name: string;
  /** Undefined: all of them. */
  readonly models: readonly string[] | undefined;
  /** Micros it may spend in all; undefined: as much as its account has. */
  readonly capMicros: number | undefined;
  readonly spentMicros: number;
  readonly budget: KeyBudget | undefined;
  readonly createdAt: Date;
  readonly expiresAt: Date | undefined;
  readonly revokedAt: Date | undefined;
  readonly lastUsedAt: Date | undefined;
  /** The user of the account made it, and not an operator. */
  readonly isOfUser: boolean;
  /** An operator has disabled the user of its account. */
  readonly isDisabled: boolean;
}

/** Stores a key by its hash; returns its id. */
export function createApiKey(
  pool: pg.Pool,
  key: Pick<ApiKey, 'accountId' | 'name' | 'models' | 'expiresAt' | 'isOfUser'> & {
    readonly hash: string;
    readonly capMicros: bigint | undefined;
    readonly budget?: BudgetTerms | undefined;
  },
): Promise<number> {
  return callFunction(pool, 'create_api_key', [
    key.accountId,
    Buffer.from(key.hash, 'hex'),
    key.name,
    key.models ?? null,
    key.capMicros ?? null,
    key.expiresAt ?? null,
    key.isOfUser,
    key.budget?.micros ?? null,
    key.budget?.period ?? null,
  ]);
}

/** Records that these keys were used now, if it was a minute or longer ago; invalid keys are left out. */
export function recordKeyUses(pool: pg.Pool, keyIds: readonly number[]): Promise<void> {
  return callFunction(pool, 'record_key_uses', [keyIds.map(String)]);
}

/** False if there is no such key, or if it was revoked before. */
export function revokeApiKey(pool: pg.Pool, keyId: number): Promise<boolean> {
  return callFunction(pool, 'revoke_api_key', [keyId]);
}

/** The key of this hash, revoked and expired ones too: whether it still holds is decided where it is used. */
export async function findApiKey(db: LedgerDatabase, hash: string): Promise<ApiKey | undefined> {
  const row = await keys(db).where('hash', '=', Buffer.from(hash, 'hex')).executeTakeFirst();
  return row && toApiKey(row);
}

export async function findApiKeyById(db: LedgerDatabase, keyId: number): Promise<ApiKey | undefined> {
  const row = await keys(db).where('key_id', '=', keyId).executeTakeFirst();
  return row && toApiKey(row);
}

/** A key, and the name of the account it spends from. */
export interface ListedKey extends ApiKey {
  readonly account: string;
}

/** Up to `limit` keys after this id, oldest first, of all accounts or of these; all of them where nothing is said. */
export async function listApiKeys(
  db: LedgerDatabase,
  {
    accountId,
    accounts,
    after = 0,
    limit,
  }: {
    readonly accountId?: number | undefined;
    readonly accounts?: readonly string[] | undefined;
    readonly after?: number;
    readonly limit?: number;
  } = {},
): Promise<ListedKey[]> {
  const listed = keys(db)
    .innerJoin('tollbook.account', 'tollbook.account.account_id', 'tollbook.api_key.account_id')
    .select('tollbook.account.name as account')
    .where('key_id', '>', after)
    .$if(accountId !== undefined, (all) => all.where('tollbook.api_key.account_id', '=', accountId ?? 0))
    .$if(accounts !== undefined, (all) => all.where('tollbook.account.name', 'in', accounts ?? []))
    .$if(limit !== undefined, (all) => all.limit(limit ?? 0))
    .orderBy('key_id');
  return (await listed.execute()).map(toApiKey);
}

/** Up to `limit` keys of an account that were not revoked, oldest first, or that were, the last to be first. */
export async function listKeysOf(
  db: LedgerDatabase,
  accountId: number,
  { isRevoked, limit }: { readonly isRevoked: boolean; readonly limit: number },
): Promise<ApiKey[]> {
  const of = keys(db).where('tollbook.api_key.account_id', '=', accountId).limit(limit);
  const listed = isRevoked
    ? of.where('revoked_at', 'is not', null).orderBy('revoked_at', 'desc').orderBy('key_id', 'desc')
    : of.where('revoked_at', 'is', null).orderBy('key_id');
  return (await listed.execute()).map(toApiKey);
}

/** How many keys of the account of this name are valid now. */
export async function countValidKeys(pool: pg.Pool, account: string): Promise<number> {
  const { count } = await queriesOn(pool)
    .selectFrom('tollbook.api_key')
    .innerJoin('tollbook.account', 'tollbook.account.account_id', 'tollbook.api_key.account_id')
    .select(({ fn }) => fn.countAll<number | string>().as('count'))
    .where('tollbook.account.name', '=', account)
    .where('revoked_at', 'is', null)
    .where((where) =>
      where.or([where('expires_at', 'is', null), where('expires_at', '>', sql<Date>`tollbook.clock()`)]),
    )
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** The first day of the current period of a key's budget. */
const budgetStart = sql<Date>`tollbook.budget_start(budget_period, budget_from, tollbook.clock())`;

function keys(db: LedgerDatabase) {
  return db
    .selectFrom('tollbook.api_key')
    .select([
      'key_id as keyId',
      'tollbook.api_key.account_id as accountId',
      'tollbook.api_key.name',
      'models',
      'cap as capMicros',
      'spent as spentMicros',
      'tollbook.api_key.created_at as createdAt',
      'expires_at as expiresAt',
      'revoked_at as revokedAt',
      'last_used_at as lastUsedAt',
      'is_of_user as isOfUser',
      'budget as micros',
      'budget_period as period',
    ])
    .select([
      sql<number>`case when budget_from = ${budgetStart} then budget_spent else 0 end`.as('spentInPeriod'),
      sql<Date | null>`tollbook.budget_end(budget_period, ${budgetStart})`.as('until'),
    ])
    .select((key) =>
      key
        .exists(
          key
            .selectFrom('tollbook.account as owner')
            .whereRef('owner.account_id', '=', 'tollbook.api_key.account_id')
            .where('owner.disabled_at', 'is not', null),
        )
        .$castTo<boolean>()
        .as('isDisabled'),
    );
}

function toApiKey<Row extends Awaited<ReturnType<ReturnType<typeof keys>['execute']>>[number]>(row: Row) {
  const { micros, period, spentInPeriod: spentMicros, until, ...key } = withoutNulls(row);
  const isBudget = micros !== undefined && period !== undefined && until !== undefined;
  return { ...key, budget: isBudget ? { micros, period, spentMicros, until } : undefined };
}
