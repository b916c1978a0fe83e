import type pg from 'pg';
import type { LedgerDatabase } from './database.ts';

/** A call in somebody's hands: what its lease is known by. */
export interface CallLease {
  readonly callId: number;
  readonly leaseId: string;
  /** Which handing-out this is, from 1: never goes down. */
  readonly attempt: number;
  /** Attempts that failed since it was last enqueued, leases that ran out included. */
  readonly failures: number;
  readonly quoteDigest: string;
}

/** A call that was just taken, with all that its runner is told. */
export interface LeasedCall extends CallLease {
  readonly serviceId: number;
  readonly jobIndex: number;
  readonly network: string;
  readonly symbol: string;
  readonly caller: string | undefined;
  readonly leaseUntil: Date;
  readonly contentType: string | undefined;
  /** Undefined where it is missing: that call can never be delivered. */
  readonly body: Buffer | undefined;
}

interface LeaseRow {
  call_id: number;
  lease_id: string;
  attempt: number;
  failures: number;
  stream: string;
  service_id: number;
  job_index: number;
  network: string;
  symbol: string;
  caller: string | null;
  lease_until: Date;
  content_type: string | null;
  body: Buffer | null;
}

/**
 * Takes up to `max` calls that are due for these services, in turn and oldest first, for `leaseSecs`.
 * Sent as one simple-protocol message: it locks rows that the lane may want.
 */
export async function leaseCalls(
  pool: pg.Pool,
  services: readonly number[],
  max: number,
  leaseSecs: number,
): Promise<LeasedCall[]> {
  const list = [...new Set(services.map(Math.trunc))].join(',');
  const { rows } = await pool.query<LeaseRow>(
    `select * from tollbook.lease_calls('{${list}}', ${Math.trunc(max)}, ${Math.trunc(leaseSecs)})`,
  );
  return rows.map((row) => ({
    callId: row.call_id,
    leaseId: row.lease_id,
    attempt: row.attempt,
    failures: row.failures,
    quoteDigest: row.stream,
    serviceId: row.service_id,
    jobIndex: row.job_index,
    network: row.network,
    symbol: row.symbol,
    caller: row.caller ?? undefined,
    leaseUntil: row.lease_until,
    contentType: row.content_type ?? undefined,
    body: row.body ?? undefined,
  }));
}

/** Stores a request's bytes before its call exists, so that the lane never carries them. */
export async function putBody(
  pool: pg.Pool,
  bodyId: string,
  contentType: string | undefined,
  body: Buffer,
): Promise<void> {
  await pool.query({
    name: 'put_body',
    text: 'select tollbook.put_body($1, $2, $3)',
    values: [bodyId, contentType ?? null, body],
  });
}

/** When the lease of a call ends now; undefined where this lease is no longer held. */
export async function extendLease(
  pool: pg.Pool,
  callId: number,
  leaseId: string,
  leaseSecs: number,
): Promise<Date | undefined> {
  const { rows } = await pool.query<{ extend_lease: Date }>('select tollbook.extend_lease($1, $2, $3)', [
    callId,
    leaseId,
    leaseSecs,
  ]);
  return rows[0]?.extend_lease;
}

/** Stores what a runner answered, before `completed` is recorded. */
export async function putResult(
  pool: pg.Pool,
  call: { readonly callId: number; readonly attempt: number; readonly leaseId: string },
  contentType: string | undefined,
  body: Buffer,
): Promise<void> {
  await pool.query('select tollbook.put_result($1, $2, $3, $4, $5)', [
    call.callId,
    call.attempt,
    call.leaseId,
    contentType ?? null,
    body,
  ]);
}

/** The call that this lease still holds; undefined where another has it, or it has left the queue. */
export async function findLeasedCall(
  db: LedgerDatabase,
  callId: number,
  leaseId: string,
): Promise<(CallLease & { readonly serviceId: number }) | undefined> {
  const row = await db
    .selectFrom('tollbook.call')
    .select(['call_id', 'attempt', 'failures', 'stream', 'service_id'])
    .where('call_id', '=', callId)
    .where('lease_id', '=', leaseId)
    .where('status', '=', 'leased')
    .executeTakeFirst();
  return (
    row && {
      callId: row.call_id,
      leaseId,
      attempt: row.attempt,
      failures: row.failures,
      quoteDigest: row.stream,
      serviceId: row.service_id,
    }
  );
}

/** Whether it was this lease that completed a call: its completion may be sent again. */
export async function isCompletedBy(db: LedgerDatabase, callId: number, leaseId: string): Promise<boolean> {
  const last = await db
    .selectFrom('tollbook.call_result')
    .leftJoin('tollbook.call', 'tollbook.call.call_id', 'tollbook.call_result.call_id')
    .select(['tollbook.call_result.lease_id', 'tollbook.call.call_id as open'])
    .where('tollbook.call_result.call_id', '=', callId)
    .orderBy('tollbook.call_result.attempt', 'desc')
    .limit(1)
    .executeTakeFirst();
  return last?.lease_id === leaseId && last.open === null;
}

export interface CallResult {
  readonly contentType: string | undefined;
  readonly body: Buffer;
}

export async function readResult(
  db: LedgerDatabase,
  callId: number,
  attempt: number,
): Promise<CallResult | undefined> {
  const row = await db
    .selectFrom('tollbook.call_result')
    .select(['content_type', 'body'])
    .where('call_id', '=', callId)
    .where('attempt', '=', attempt)
    .executeTakeFirst();
  return row && { contentType: row.content_type ?? undefined, body: row.body };
}

/** Calls that no attempt could deliver: they wait here for the operator. Oldest first. */
export async function listDeadCalls(db: LedgerDatabase, limit: number, afterCallId = 0) {
  return db
    .selectFrom('tollbook.call')
    .select([
      'call_id',
      'stream',
      'service_id',
      'job_index',
      'attempt',
      'failures',
      'due_at',
      'created_at',
      'last_error',
    ])
    .where('status', '=', 'dead')
    .where('call_id', '>', afterCallId)
    .orderBy('call_id')
    .limit(limit)
    .execute();
}

/** The call of a quote while it is not completed. */
export async function findCall(db: LedgerDatabase, callId: number) {
  return db
    .selectFrom('tollbook.call')
    .select(['call_id', 'stream', 'status'])
    .where('call_id', '=', callId)
    .executeTakeFirst();
}

/** How long the oldest call that could be taken has been waiting, in milliseconds; 0 where none waits. */
export async function oldestDueMs(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query<{ ms: number | null }>(
    `select extract(epoch from tollbook.clock() - min(due_at))::float8 * 1000 as ms
     from tollbook.call where status = 'ready' and due_at <= tollbook.clock()`,
  );
  return Math.round(rows[0]?.ms ?? 0);
}

/** Drops up to `max` bodies without a call and answers nobody will ask for again. Returns how many went. */
export async function pruneLane(pool: pg.Pool, max: number): Promise<number> {
  const { rows } = await pool.query<{ pruned: number }>('select tollbook.prune_lane($1) as pruned', [max]);
  return rows[0]?.pruned ?? 0;
}
