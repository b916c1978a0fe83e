import type pg from 'pg';
import { type LedgerDatabase, queriesOn } from './database.ts';

/** An account by its projection; the fold of its events says the same. Micros. */
export interface Account {
  readonly accountId: number;
  readonly name: string;
  readonly balanceMicros: number;
  readonly heldMicros: number;
  readonly usedMicros: number;
}

/** The id of the account of this name; undefined where there is none. */
export async function findAccountId(pool: pg.Pool, name: string): Promise<number | undefined> {
  const row = await queriesOn(pool)
    .selectFrom('tollbook.account')
    .select('account_id')
    .where('name', '=', name)
    .executeTakeFirst();
  return row?.account_id;
}

/** An id that no account has: for the one that is opened with it. */
export async function nextAccountId(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query<{ id: number }>('select tollbook.next_account_id() as id');
  const id = rows[0]?.id;
  if (id === undefined) throw new Error('there is no next account id');
  return id;
}

export async function findAccount(
  db: LedgerDatabase,
  by: { readonly accountId: number } | { readonly name: string },
): Promise<Account | undefined> {
  const row = await accounts(db)
    .where((where) => ('name' in by ? where('name', '=', by.name) : where('account_id', '=', by.accountId)))
    .executeTakeFirst();
  return row && toAccount(row);
}

/** Up to `limit` accounts after this id, oldest first; all of them where nothing is said. */
export async function listAccounts(
  db: LedgerDatabase,
  { after = 0, limit }: { readonly after?: number; readonly limit?: number } = {},
): Promise<Account[]> {
  const all = accounts(db).where('account_id', '>', after).orderBy('account_id');
  return (await (limit === undefined ? all : all.limit(limit)).execute()).map(toAccount);
}

function accounts(db: LedgerDatabase) {
  return db.selectFrom('tollbook.account').select(['account_id', 'name', 'balance', 'held', 'used']);
}

function toAccount(row: Awaited<ReturnType<ReturnType<typeof accounts>['execute']>>[number]): Account {
  return {
    accountId: row.account_id,
    name: row.name,
    balanceMicros: row.balance,
    heldMicros: row.held,
    usedMicros: row.used,
  };
}

/** A hold whose process is not seen any more. */
export interface OrphanedHold {
  readonly chatId: string;
  readonly accountId: number;
  readonly keyId: number | undefined;
  readonly amountMicros: bigint;
  /** The upstream had begun to answer. */
  readonly isStarted: boolean;
}

/**
 * Holds of other processes that were not seen for `silentSecs`, oldest first, without those `besides`. None at all unless
 * `processId` itself was seen all that time: where it, or the database, was away, so may have been everybody else.
 */
export async function findOrphanedHolds(
  pool: pg.Pool,
  {
    processId,
    silentSecs,
    max,
    besides = [],
  }: {
    readonly processId: string;
    readonly silentSecs: number;
    readonly max: number;
    readonly besides?: readonly string[];
  },
): Promise<OrphanedHold[]> {
  const { rows } = await pool.query<{
    chat_id: string;
    account_id: number;
    key_id: number | null;
    amount: number;
    is_started: boolean;
  }>(
    `select chat_id, account_id, key_id, amount, started_at is not null as is_started
     from tollbook.chat_hold
     where created_at <= (select tollbook.clock()) - $2 * interval '1 second' and not chat_id = any ($4::uuid[])
       and process_id in (
         select process_id from (select distinct process_id from tollbook.chat_hold) holder
         where tollbook.is_process_silent(process_id, $1, $2))
     order by created_at limit $3`,
    [processId, silentSecs, max, besides],
  );
  return rows.map((row) => ({
    chatId: row.chat_id,
    accountId: row.account_id,
    keyId: row.key_id ?? undefined,
    amountMicros: BigInt(row.amount),
    isStarted: row.is_started,
  }));
}

/** Deletes up to `max` unused rate windows, and as many processes and recovered chats of long ago. Returns how many. */
export async function pruneChat(pool: pg.Pool, max: number): Promise<number> {
  // one simple-protocol message: it locks rows that the lane may want
  const { rows } = await pool.query<{ pruned: number }>(
    `select tollbook.prune_chat(${Math.trunc(max)}) as pruned`,
  );
  return rows[0]?.pruned ?? 0;
}

/**
 * Notes that upstreams have begun to answer: from here on these holds are captured, whatever becomes of the process.
 * Returns those that are still held.
 */
export async function markHoldsStarted(
  pool: pg.Pool,
  chatIds: readonly string[],
): Promise<ReadonlySet<string>> {
  const { rows } = await pool.query<{ chat_id: string }>({
    name: 'start_holds',
    text: 'select mark_holds_started as chat_id from tollbook.mark_holds_started($1)',
    values: [chatIds],
  });
  return new Set(rows.map((row) => row.chat_id));
}

/** What became of a key that was shown; `limited`: too many of this client's were not known in the last minute. */
export interface KeyCheck {
  readonly outcome: 'known' | 'unknown' | 'limited';
  /** Until another one is looked at. */
  readonly retryMs: number;
}

/**
 * Whether the key of this SHA-256 holds now. One that does not counts against `subject`, in all processes together; past
 * `perMinute` of them nothing is told of a key any more.
 */
export async function checkApiKey(
  pool: pg.Pool,
  subject: string,
  perMinute: number,
  hash: string,
): Promise<KeyCheck> {
  const { rows } = await pool.query<{ outcome: KeyCheck['outcome']; retry_ms: number | null }>({
    name: 'try_api_key',
    text: 'select code as outcome, retry_ms from tollbook.check_api_key($1, $2, $3)',
    values: [subject, perMinute, Buffer.from(hash, 'hex')],
  });
  const [row] = rows;
  if (!row) throw new Error('nothing was said of the key');
  return { outcome: row.outcome, retryMs: row.retry_ms ?? 0 };
}

/**
 * Whether a client may show another credential that is no key; `counts` notes one that was no good. All processes together.
 */
export async function countAuthFailure(
  pool: pg.Pool,
  subject: string,
  perMinute: number,
  counts: boolean,
): Promise<boolean> {
  const { rows } = await pool.query<{ may: boolean }>({
    name: 'note_auth_failure',
    text: 'select tollbook.count_auth_failure($1, $2, $3) as may',
    values: [subject, perMinute, counts],
  });
  return rows[0]?.may ?? true;
}
