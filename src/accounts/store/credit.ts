import { sql } from 'kysely';
import type pg from 'pg';
import { type LedgerDatabase, queriesOn } from '../../ledger/store/database.ts';
import { callFunction } from '../../ledger/store/functions.ts';

/** An account by its projection, which equals the fold of its events. Amounts in micros. */
export interface Account {
  readonly accountId: number;
  readonly name: string;
  readonly balanceMicros: number;
  readonly heldMicros: number;
  readonly usedMicros: number;
}

/** The id of the account of this name; undefined if there is none. */
export async function findAccountId(pool: pg.Pool, name: string): Promise<number | undefined> {
  return (await findAccountOpening(pool, { name }))?.accountId;
}

/** An account, and whether its opening is on record. */
export interface AccountOpening {
  readonly accountId: number;
  readonly name: string;
  readonly isRecorded: boolean;
}

/** The account of this name or id; undefined if there is none. */
export async function findAccountOpening(
  pool: pg.Pool,
  by: { readonly name: string } | { readonly accountId: number },
): Promise<AccountOpening | undefined> {
  const row = await queriesOn(pool)
    .selectFrom('tollbook.account')
    .select(['account_id', 'name', 'recorded_at'])
    .where((where) => ('name' in by ? where('name', '=', by.name) : where('account_id', '=', by.accountId)))
    .executeTakeFirst();
  return row && { accountId: row.account_id, name: row.name, isRecorded: row.recorded_at !== null };
}

/** An unused account id, for the account that is opened with it. */
export function nextAccountId(pool: pg.Pool): Promise<number> {
  return callFunction(pool, 'next_account_id', []);
}

export async function findAccount(
  db: LedgerDatabase,
  by: { readonly accountId: number } | { readonly name: string },
): Promise<Account | undefined> {
  return accounts(db)
    .where((where) => ('name' in by ? where('name', '=', by.name) : where('account_id', '=', by.accountId)))
    .executeTakeFirst();
}

/** Up to `limit` accounts after this id, oldest first, of all names or of these; all of them without a limit. */
export async function listAccounts(
  db: LedgerDatabase,
  {
    after = 0,
    limit,
    names,
  }: {
    readonly after?: number;
    readonly limit?: number;
    readonly names?: readonly string[] | undefined;
  } = {},
): Promise<Account[]> {
  const all = accounts(db)
    .where('account_id', '>', after)
    .$if(names !== undefined, (some) => some.where('name', 'in', names ?? []))
    .orderBy('account_id');
  return (limit === undefined ? all : all.limit(limit)).execute();
}

function accounts(db: LedgerDatabase) {
  return db
    .selectFrom('tollbook.account')
    .select([
      'account_id as accountId',
      'name',
      'balance as balanceMicros',
      'held as heldMicros',
      'used as usedMicros',
    ]);
}

/** A hold whose process has stopped sending heartbeats. */
export interface OrphanedHold {
  readonly chatId: string;
  readonly accountId: number;
  readonly keyId: number | undefined;
  readonly amountMicros: bigint;
  /** The answer had begun to be passed on. */
  readonly isStarted: boolean;
}

/**
 * Holds of other processes that sent no heartbeat for `silentSecs`, oldest first, without those in `besides`. None where
 * `processId` itself had a gap in that time: then it, or the database, was unreachable, and other processes may have been too.
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
  const db = queriesOn(pool);
  // each process is examined once, however many holds it has
  const holders = db.selectFrom('tollbook.chat_hold').select('process_id').distinct().as('holder');
  const rows = await db
    .selectFrom('tollbook.chat_hold')
    .select(['chat_id', 'account_id', 'key_id', 'amount'])
    .select((hold) => hold('started_at', 'is not', null).$castTo<boolean>().as('is_started'))
    // in the future if the clock was ahead
    .where(
      sql<boolean>`created_at not between (select tollbook.clock()) - ${silentSecs} * interval '1 second' and (select tollbook.clock())`,
    )
    .where((hold) => hold.not(sql<boolean>`${hold.ref('chat_id')} = any (${besides}::uuid[])`))
    .where('process_id', 'in', (hold) =>
      hold
        .selectFrom(holders)
        .select('holder.process_id')
        .where(
          ({ ref }) =>
            sql<boolean>`tollbook.is_process_silent(${ref('holder.process_id')}, ${processId}, ${silentSecs})`,
        ),
    )
    .orderBy('created_at')
    .limit(max)
    .execute();
  return rows.map((row) => ({
    chatId: row.chat_id,
    accountId: row.account_id,
    keyId: row.key_id ?? undefined,
    amountMicros: BigInt(row.amount),
    isStarted: row.is_started,
  }));
}

/**
 * Records that answers are about to be passed on: from now on these holds are captured, even if the process ends.
 * Returns those that are still held.
 */
export async function markHoldsStarted(
  pool: pg.Pool,
  chatIds: readonly string[],
): Promise<ReadonlySet<string>> {
  // raw SQL: prepared, because every completion runs it
  const { rows } = await pool.query<{ chat_id: string }>({
    name: 'start_holds',
    text: 'select mark_holds_started as chat_id from tollbook.mark_holds_started($1)',
    values: [chatIds],
  });
  return new Set(rows.map((row) => row.chat_id));
}

/** The check of a presented key; `limited`: too many keys of this client were unknown in the last minute. */
export interface KeyCheck {
  readonly outcome: 'known' | 'unknown' | 'limited';
  /** Until the next key is checked. */
  readonly retryMs: number;
}

/**
 * Whether the key of this SHA-256 is valid now. An invalid one counts against `subject`, over all processes; after
 * `perMinute` of them no key is checked any more.
 */
export async function checkApiKey(
  pool: pg.Pool,
  subject: string,
  perMinute: number,
  hash: string,
): Promise<KeyCheck> {
  // raw SQL: prepared, because every request with a key runs it
  const { rows } = await pool.query<{ outcome: KeyCheck['outcome']; retry_ms: number | null }>({
    name: 'try_api_key',
    text: 'select code as outcome, retry_ms from tollbook.check_api_key($1, $2, $3)',
    values: [subject, perMinute, Buffer.from(hash, 'hex')],
  });
  const [row] = rows;
  if (!row) throw new Error('tollbook.check_api_key returned no row');
  return { outcome: row.outcome, retryMs: row.retry_ms ?? 0 };
}

/**
 * Whether a client may present another credential that is not a key; `counts` records an invalid one. Over all processes.
 */
export async function countAuthFailure(
  pool: pg.Pool,
  subject: string,
  perMinute: number,
  counts: boolean,
): Promise<boolean> {
  // raw SQL: prepared, because it precedes every request with this credential
  const { rows } = await pool.query<{ may: boolean }>({
    name: 'note_auth_failure',
    text: 'select tollbook.count_auth_failure($1, $2, $3) as may',
    values: [subject, perMinute, counts],
  });
  return rows[0]?.may ?? true;
}
