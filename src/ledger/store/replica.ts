import type pg from 'pg';

/** Which database a server has, and how far along its write-ahead log. */
interface Position {
  readonly systemIdentifier: string;
  readonly oid: number;
  /** Of a standby: the last one that it has written to its control file, after a failover some time after it follows it. */
  readonly timeline: number;
  /** In bytes: on one timeline, a server that has come to a place has everything before it. */
  readonly lsn: number;
  /** The last event that a reader sees. */
  readonly seq: number;
}

export interface PrimaryPosition extends Position {
  /** The ledger's clock, in Unix milliseconds. */
  readonly nowMs: number;
}

export interface ReplicaPosition extends Omit<Position, 'lsn'> {
  readonly isStandby: boolean;
  /** When its server was started: another value means another server, or the same one without the connections that it had. */
  readonly startedAt: string;
  /** Undefined if it is no standby. */
  readonly lsn: number | undefined;
  /** When the last commit that it has replayed was made, by the primary's clock; undefined if it has replayed none since its start. */
  readonly replayedMs: number | undefined;
  /** SHA-256 of the last event's leaf, in hex; undefined if it has none. */
  readonly leafHash: string | undefined;
}

const identity = `(select system_identifier::text from pg_control_system()) as "systemIdentifier",
  (select oid from pg_database where datname = current_database()) as oid`;
const last = `left join lateral (
  select event.seq, encode(sha256(tollbook.leaf(event)), 'hex') as hash
  from tollbook.event where lane_id = 1 order by event.seq desc limit 1) last on true`;

/** Every commit that anyone has read from the primary before this began is before its `lsn`. Fails on a standby. */
export async function readPrimaryPosition(pool: pg.Pool): Promise<PrimaryPosition> {
  // raw SQL: functions of PostgreSQL's own; the snapshot is older than the functions' answers, so the events are before the place
  const { rows } = await pool.query<PrimaryPosition>({
    name: 'primary_position',
    text: `select ${identity}, coalesce(last.seq, 0) as seq,
        ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int as timeline,
        pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint as lsn,
        extract(epoch from tollbook.clock())::float8 * 1000 as "nowMs"
      from (select) one ${last}`,
  });
  return only(rows);
}

export async function readReplicaPosition(pool: pg.Pool): Promise<ReplicaPosition> {
  // raw SQL: the same
  const { rows } = await pool.query<{ [K in keyof ReplicaPosition]: ReplicaPosition[K] | null }>({
    name: 'replica_position',
    text: `select ${identity}, coalesce(last.seq, 0) as seq, last.hash as "leafHash",
        pg_is_in_recovery() as "isStandby", pg_postmaster_start_time()::text as "startedAt",
        (select greatest(timeline_id, min_recovery_end_timeline) from pg_control_checkpoint(), pg_control_recovery()) as timeline,
        pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::bigint as lsn,
        extract(epoch from pg_last_xact_replay_timestamp())::float8 * 1000 as "replayedMs"
      from (select) one ${last}`,
  });
  const row = only(rows);
  const known = Object.entries(row).map(([name, value]) => [name, value ?? undefined]);
  return Object.fromEntries(known) as ReplicaPosition;
}

/** SHA-256 of an event's leaf, in hex; undefined if there is no such event. */
export async function findLeafHash(pool: pg.Pool, seq: number): Promise<string | undefined> {
  // raw SQL: as above
  const { rows } = await pool.query<{ hash: string }>(
    `select encode(sha256(tollbook.leaf(event)), 'hex') as hash from tollbook.event where lane_id = 1 and seq = $1`,
    [seq],
  );
  return rows[0]?.hash;
}

/** When the server of a connection was started, as `ReplicaPosition` has it. */
export async function readStartTime(client: pg.ClientBase): Promise<string> {
  // raw SQL: as above
  const { rows } = await client.query<{ at: string }>('select pg_postmaster_start_time()::text as at');
  return only(rows).at;
}

function only<T>([row]: readonly T[]): T {
  if (!row) throw new Error('the database says nothing about itself');
  return row;
}
