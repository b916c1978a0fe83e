import pg from 'pg';
import type { EventData } from '../rules/event.ts';
import type { DatabaseIdentity } from '../../base/values/database-identity.ts';
import { isDatabaseLoss, queriesOn } from './database.ts';
import { isOfStreams, streamKey } from './expressions.ts';
import { decoded, leavesIn } from './streams.ts';
import { callFunction } from './functions.ts';
import type { Lane } from './lane.ts';

/** Of the database that a pool is connected to. */
export async function readIdentity(pool: pg.Pool): Promise<DatabaseIdentity> {
  const [systemIdentifier, timeline, oid] = await Promise.all([
    ask<string>(pool, 'select system_identifier::text as value from pg_control_system()'),
    readTimeline(pool),
    ask<number>(pool, 'select oid as value from pg_database where datname = current_database()'),
  ]);
  if (oid === undefined) throw new Error('the database does not say its number');
  return { systemIdentifier, oid, timeline };
}

/** Undefined on a standby, and where PostgreSQL refuses to tell it. */
export function readTimeline(pool: pg.Pool): Promise<number | undefined> {
  // the first eight digits of the name of the file that is being written; the control file has that of the last checkpoint
  return ask<number>(
    pool,
    `select ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int as value`,
  );
}

/** By default every user of PostgreSQL may ask; undefined if an administrator or a provider forbids it. */
async function ask<T>(pool: pg.Pool, text: string): Promise<T | undefined> {
  try {
    // raw SQL: functions and tables of PostgreSQL's own
    const { rows } = await pool.query<{ value: T }>(text);
    return rows[0]?.value;
  } catch (error) {
    if (error instanceof pg.DatabaseError && !isDatabaseLoss(error)) return undefined;
    throw error;
  }
}

export interface RecordedIdentity {
  readonly database: DatabaseIdentity;
  /** Of the stream that records changes of the timeline. */
  readonly version: number;
}

const stream = 'operator:database';

/** The identity on record: of the last event that has one, else of the first start. Undefined before the first start. */
export async function readRecordedIdentity(pool: pg.Pool): Promise<RecordedIdentity | undefined> {
  const first = await queriesOn(pool)
    .selectFrom('tollbook.database_identity')
    .select(['system_identifier', 'oid', 'timeline'])
    .executeTakeFirst();
  // few, and found by their streams
  const found = leavesIn(queriesOn(pool)).where(({ eb, or, and }) =>
    or([
      eb('stream', '=', streamKey(stream)),
      and([isOfStreams('recovery:'), eb('type', '=', 'ledger_recovered')]),
    ]),
  );
  const events = await decoded(found.orderBy('seq'));
  const version = events.filter((event) => event.stream === stream).length;
  const last = events.flatMap(({ type, data }) =>
    (type === 'database_continued' || type === 'ledger_recovered') && data.database ? data.database : [],
  );
  const recorded = last.at(-1);
  if (recorded) return { database: fromData(recorded), version };
  if (!first) return undefined;
  const { system_identifier: systemIdentifier, oid, timeline } = first;
  return {
    database: { systemIdentifier: systemIdentifier ?? undefined, oid, timeline: timeline ?? undefined },
    version,
  };
}

/** Records the identity at the first start; later calls change nothing. */
export function recordFirstIdentity(
  pool: pg.Pool,
  { systemIdentifier, oid, timeline }: DatabaseIdentity,
): Promise<void> {
  return callFunction(pool, 'record_database_identity', [systemIdentifier ?? null, oid, timeline ?? null]);
}

export type Proof = Omit<EventData<'database_continued'>, 'database'>;

/** Records that the timeline is another one, and that nothing is missing. Where another process does so too, one event. */
export async function recordContinuation(
  lane: Lane,
  { version }: RecordedIdentity,
  database: DatabaseIdentity,
  proof: Proof,
): Promise<void> {
  const data = { database: identityData(database), ...proof };
  await lane.append({ stream, expect: version, events: [{ type: 'database_continued', data }] });
}

type IdentityData = EventData<'database_continued'>['database'];

export function identityData({ systemIdentifier, oid, timeline }: DatabaseIdentity): IdentityData {
  return {
    ...(systemIdentifier !== undefined && { system_identifier: systemIdentifier }),
    oid,
    ...(timeline !== undefined && { timeline }),
  };
}

function fromData({ system_identifier: systemIdentifier, oid, timeline }: IdentityData): DatabaseIdentity {
  return { systemIdentifier, oid, timeline };
}
