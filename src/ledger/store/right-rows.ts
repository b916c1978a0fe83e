import type { RowSnapshot } from './stored-rows.ts';

/** What an operator's token may do. */
export interface StoredToken {
  readonly token_id: number;
  readonly scopes: readonly string[];
  readonly accounts: readonly string[] | null;
  readonly is_revoked: boolean;
}

/** Whose credit an API key spends. */
export interface StoredKey {
  readonly key_id: number;
  readonly account_id: number;
  readonly is_revoked: boolean;
}

/** What a person may do in the console. */
export interface StoredOperator {
  readonly name: string;
  readonly user_id: string;
  readonly role: string;
}

export async function readTokens({ client }: RowSnapshot): Promise<StoredToken[]> {
  const { rows } = await client.query<StoredToken>(
    `select token_id, scopes, accounts, revoked_at is not null as is_revoked from tollbook.operator_token order by token_id`,
  );
  return rows;
}

export async function readKeys({ client }: RowSnapshot): Promise<StoredKey[]> {
  const { rows } = await client.query<StoredKey>(
    `select key_id, account_id, revoked_at is not null as is_revoked from tollbook.api_key order by key_id`,
  );
  return rows;
}

/** Those who have a role. */
export async function readOperators({ client }: RowSnapshot): Promise<StoredOperator[]> {
  const { rows } = await client.query<StoredOperator>(
    `select name, user_id, role from identity.operator where role is not null and user_id is not null order by name`,
  );
  return rows;
}
