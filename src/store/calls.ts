import type pg from 'pg';
import type { LedgerDatabase } from './database.ts';
import { callFunction } from './functions.ts';

/** The lease of a call. */
export interface CallLease {
  readonly callId: number;
  readonly leaseId: string;
  /** From 1; the fencing token, which never goes down. */
  readonly attempt: number;
  /** Attempts that failed since the call was last enqueued, expired leases included. */
  readonly failures: number;
  readonly quoteDigest: string;
}

/** A call that was just leased, with all that its runner receives. */
export interface LeasedCall extends CallLease {
  readonly serviceId: number;
  readonly jobIndex: number;
  readonly network: string;
  readonly asset: string;
  readonly symbol: string;
  readonly caller: string | undefined;
  /** The payment that bought it, as `paymentKey()` names it. */
  readonly payment: string;
  readonly leaseUntil: Date;
  /** The span of the request that bought it, where it was traced. */
  readonly traceparent: string | undefined;
  readonly contentType: string | undefined;
  /** Undefined where the body is missing: such a call can never be delivered. */
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
  asset: string;
  symbol: string;
  caller: string | null;
  payment: string;
  lease_until: Date;
  traceparent: string | null;
  content_type: string | null;
  body: Buffer | null;
}

/**
 * Takes up to `max` calls that are due for these services, in turn and oldest first, for `leaseSecs`; fewer where their bodies are
 * large.
 * Raw SQL: the runners' hot path. One simple-protocol message, because it locks rows that the lane may need.
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
    asset: row.asset,
    symbol: row.symbol,
    caller: row.caller ?? undefined,
    payment: row.payment,
    leaseUntil: row.lease_until,
    traceparent: row.traceparent ?? undefined,
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
  // raw SQL: prepared, because every paid request runs it, and with a parameter, because a literal doubles the body's bytes
  await pool.query({
    name: 'put_body',
    text: 'select tollbook.put_body($1, $2, $3)',
    values: [bodyId, contentType ?? null, body],
  });
}

/** Extends a lease; returns when it ends now, or undefined where the lease is no longer held. */
export async function extendLease(
  pool: pg.Pool,
  callId: number,
  leaseId: string,
  leaseSecs: number,
): Promise<Date | undefined> {
  // raw SQL: a set that is empty where the lease is lost; every heartbeat of a runner runs it
  const { rows } = await pool.query<{ extend_lease: Date }>('select tollbook.extend_lease($1, $2, $3)', [
    callId,
    leaseId,
    leaseSecs,
  ]);
  return rows[0]?.extend_lease;
}

/** Stores a runner's result, before `completed` is recorded. */
export async function putResult(
  pool: pg.Pool,
  call: { readonly callId: number; readonly attempt: number; readonly leaseId: string },
  contentType: string | undefined,
  body: Buffer,
): Promise<void> {
  // raw SQL with parameters: a literal doubles the result's bytes
  await pool.query('select tollbook.put_result($1, $2, $3, $4, $5)', [
    call.callId,
    call.attempt,
    call.leaseId,
    contentType ?? null,
    body,
  ]);
}

/** The call of a lease; undefined where another lease holds the call, or where it has left the queue. */
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
    .where('status', 'in', ['leased', 'unpaid'])
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

/** Whether this lease completed the call: its runner may send the completion again. */
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

/** Dead letters, oldest first: no attempt could deliver these calls, and the operator decides about them. */
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
      'last_reason',
      'last_runner',
    ])
    .where('status', '=', 'dead')
    .where('call_id', '>', afterCallId)
    .orderBy('call_id')
    .limit(limit)
    .execute();
}

/** Which dead letters are meant: those that match every member that is set. */
export interface DeadLetterFilter {
  readonly serviceId?: number | undefined;
  /** As the ledger has it. */
  readonly reason?: string | undefined;
  readonly runner?: string | undefined;
  /** Dead since then or later. */
  readonly since?: Date | undefined;
  /** Dead before that. */
  readonly before?: Date | undefined;
}

/** The ids of up to `max` dead letters behind a call id, in order. */
export async function findDeadCalls(
  db: LedgerDatabase,
  { serviceId, reason, runner, since, before }: DeadLetterFilter,
  afterCallId: number,
  max: number,
): Promise<number[]> {
  const rows = await db
    .selectFrom('tollbook.call')
    .select('call_id')
    .where('status', '=', 'dead')
    .where('call_id', '>', afterCallId)
    .$if(serviceId !== undefined, (calls) => calls.where('service_id', '=', serviceId ?? 0))
    .$if(reason !== undefined, (calls) => calls.where('last_reason', '=', reason ?? ''))
    .$if(runner !== undefined, (calls) => calls.where('last_runner', '=', runner ?? ''))
    .$if(since !== undefined, (calls) => calls.where('due_at', '>=', since ?? new Date(0)))
    .$if(before !== undefined, (calls) => calls.where('due_at', '<', before ?? new Date(0)))
    .orderBy('call_id')
    .limit(max)
    .execute();
  return rows.map(({ call_id: callId }) => callId);
}

/** The call of a quote while it is not completed. */
export async function findCall(db: LedgerDatabase, callId: number) {
  return db
    .selectFrom('tollbook.call')
    .select(['call_id', 'stream', 'status', 'attempt'])
    .where('call_id', '=', callId)
    .executeTakeFirst();
}

/** The calls of a service that a runner could take: due, and not leased or with a lease that has expired. */
export interface WaitingCalls {
  readonly serviceId: number;
  /** At most 10,000; with more than ten services fewer, 100,000 in all. */
  readonly calls: number;
  /** The one that has been waiting longest. */
  readonly oldestCallId: number;
  readonly oldestMs: number;
  /** Whether a runner has another call of the service now. */
  readonly isLeased: boolean;
}

/** By service, only those where a call waits. */
export async function readWaitingCalls(pool: pg.Pool): Promise<WaitingCalls[]> {
  // raw SQL: jumps from service to service in the index, so that a long queue is not read to its end
  const { rows } = await pool.query<WaitingRow>(`
    with recursive service as (
      select min(service_id) as id from tollbook.call where status in ('ready', 'leased')
      union all
      select (select min(call.service_id) from tollbook.call where call.status in ('ready', 'leased') and call.service_id > service.id)
      from service where service.id is not null)
    select service.id as service_id, oldest.call_id, oldest.waiting_ms,
      (select count(*) from (
        select from tollbook.call where status in ('ready', 'leased') and service_id = service.id and due_at <= now limit most.calls) few) as calls,
      exists (select from tollbook.call where status = 'leased' and service_id = service.id and due_at > now) as is_leased
    from (select tollbook.clock() as now) moment, (select least(10000, 100000 / greatest(1, count(id))) as calls from service) most,
    service cross join lateral (
      select call_id, extract(epoch from now - due_at)::float8 * 1000 as waiting_ms
      from tollbook.call where status in ('ready', 'leased') and service_id = service.id and due_at <= now
      order by due_at limit 1) oldest
    order by service.id`);
  return rows.map((row) => ({
    serviceId: row.service_id,
    calls: row.calls,
    oldestCallId: row.call_id,
    oldestMs: Math.round(row.waiting_ms),
    isLeased: row.is_leased,
  }));
}

interface WaitingRow {
  readonly service_id: number;
  readonly call_id: number;
  readonly waiting_ms: number;
  readonly calls: number;
  readonly is_leased: boolean;
}

/** Makes up to `max` rows of a kind due that were written while the database's clock was ahead. Returns how many. */
export function pullDueTimes(pool: pg.Pool, max: number): Promise<number> {
  return callFunction(pool, 'pull_due_times', [max]);
}
