import type { DBAdapter, Where } from 'better-auth/adapters';
import type { Identity } from './context.ts';
import { endUserSessions, sessionTokenHash } from './sessions.ts';

type Row = Record<string, unknown>;

/** A provider's tokens are never stored. */
const unkept = [
  'accessToken',
  'refreshToken',
  'idToken',
  'accessTokenExpiresAt',
  'refreshTokenExpiresAt',
] as const;

/**
 * Wraps better-auth's adapter, which stores session tokens in plain text and deletes sessions without a record. Here the
 * database stores only the token's hash, and the end of a session is recorded in the ledger first.
 */
export function guardAdapter(inner: DBAdapter, identity: Pick<Identity, 'pool' | 'lane'>): DBAdapter {
  const endAll = async (where: Where[]): Promise<number> => {
    let ended = 0;
    for (;;) {
      // sessions that have ended already only wait to be deleted
      const isLive: Where = { field: 'expiresAt', operator: 'gt', value: new Date(0) };
      const rows = await inner.findMany<Row>({ model: 'session', where: [...where, isLive] });
      const ids = rows.map(({ id }) => String(id));
      if (ids.length === 0) return ended;
      ended += await endUserSessions(identity, ids);
    }
  };
  const guarded: DBAdapter = {
    ...inner,
    // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the signature is the library's
    async create<T extends Row, R = T>(query: Parameters<DBAdapter['create']>[0]): Promise<R> {
      if (query.model === 'account') return inner.create({ ...query, data: withoutTokens(query.data) });
      if (query.model !== 'session') return inner.create(query);
      const { token } = query.data as Row;
      const data = { ...query.data, token: hashed(token), ipAddress: '', userAgent: '' };
      return { ...(await inner.create<Row, R>({ ...query, data })), token };
    },
    async findOne<T>(query: Parameters<DBAdapter['findOne']>[0]): Promise<T | null> {
      if (query.model !== 'session') return inner.findOne<T>(query);
      const row = await inner.findOne<T>({ ...query, where: byHash(query.where) });
      return row && { ...row, token: tokenIn(query.where) };
    },
    async findMany<T>(query: Parameters<DBAdapter['findMany']>[0]): Promise<T[]> {
      if (query.model !== 'session') return inner.findMany<T>(query);
      const rows = await inner.findMany<T>({ ...query, where: byHash(query.where) });
      return rows.map((row) => ({ ...row, token: tokenIn(query.where) }));
    },
    async update<T>(query: Parameters<DBAdapter['update']>[0]): Promise<T | null> {
      if (query.model === 'account') return inner.update({ ...query, update: withoutTokens(query.update) });
      if (query.model !== 'session') return inner.update(query);
      const row = await inner.update<T>({ ...query, where: byHash(query.where) });
      return row && { ...row, token: tokenIn(query.where) };
    },
    updateMany: (query) =>
      inner.updateMany(query.model === 'session' ? { ...query, where: byHash(query.where) } : query),
    async delete(query) {
      if (query.model === 'session') await endAll(byHash(query.where));
      else await inner.delete(query);
    },
    deleteMany: (query) =>
      query.model === 'session' ? endAll(byHash(query.where)) : inner.deleteMany(query),
    // the library's own transaction would use the adapter without this wrapper
    transaction: (run) => run(guarded),
  };
  return guarded;
}

function byHash<W extends readonly Where[] | undefined>(where: W): W {
  return where?.map((condition) =>
    condition.field === 'token' ? { ...condition, value: hashedValue(condition.value) } : condition,
  ) as unknown as W;
}

function hashedValue(value: Where['value']): Where['value'] {
  return Array.isArray(value) ? value.map((token) => hashed(token)) : hashed(value);
}

function hashed(token: unknown): string {
  return sessionTokenHash(String(token));
}

/** The token in the query; the token of a session found in another way is not known. */
function tokenIn(where: readonly Where[] | undefined): string {
  const value = where?.find(({ field }) => field === 'token')?.value;
  return typeof value === 'string' ? value : '';
}

function withoutTokens<T extends object>(data: T): T {
  const kept = Object.entries(data).filter(([key]) => !unkept.some((name) => name === key));
  return Object.fromEntries(kept) as T;
}
