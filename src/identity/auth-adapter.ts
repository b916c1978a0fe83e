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
    async create<T extends Row, R = T>(asked: Parameters<DBAdapter['create']>[0]): Promise<R> {
      if (asked.model === 'account') return inner.create({ ...asked, data: withoutTokens(asked.data) });
      if (asked.model !== 'session') return inner.create(asked);
      const { token } = asked.data as Row;
      const data = { ...asked.data, token: hashed(token), ipAddress: '', userAgent: '' };
      return { ...(await inner.create<Row, R>({ ...asked, data })), token };
    },
    async findOne<T>(asked: Parameters<DBAdapter['findOne']>[0]): Promise<T | null> {
      if (asked.model !== 'session') return inner.findOne<T>(asked);
      const row = await inner.findOne<T>({ ...asked, where: byHash(asked.where) });
      return row && { ...row, token: tokenIn(asked.where) };
    },
    async findMany<T>(asked: Parameters<DBAdapter['findMany']>[0]): Promise<T[]> {
      if (asked.model !== 'session') return inner.findMany<T>(asked);
      const rows = await inner.findMany<T>({ ...asked, where: byHash(asked.where) });
      return rows.map((row) => ({ ...row, token: tokenIn(asked.where) }));
    },
    async update<T>(asked: Parameters<DBAdapter['update']>[0]): Promise<T | null> {
      if (asked.model === 'account') return inner.update({ ...asked, update: withoutTokens(asked.update) });
      if (asked.model !== 'session') return inner.update(asked);
      const row = await inner.update<T>({ ...asked, where: byHash(asked.where) });
      return row && { ...row, token: tokenIn(asked.where) };
    },
    updateMany: (asked) =>
      inner.updateMany(asked.model === 'session' ? { ...asked, where: byHash(asked.where) } : asked),
    async delete(asked) {
      if (asked.model === 'session') await endAll(byHash(asked.where));
      else await inner.delete(asked);
    },
    deleteMany: (asked) =>
      asked.model === 'session' ? endAll(byHash(asked.where)) : inner.deleteMany(asked),
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
