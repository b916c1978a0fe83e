import type pg from 'pg';
import type { JobId } from '../../base/values/job.ts';
import type { Firing, TriggerKind } from '../../base/values/triggers/trigger.ts';
import type { LedgerDatabase } from '../../ledger/store/database.ts';
import { callFunction } from '../../ledger/store/functions.ts';
import { isNotRefunded } from '../../ledger/store/payments.ts';
import { textLiteral } from '../../ledger/store/text-literal.ts';

export interface CallLease {
  readonly callId: number;
  readonly leaseId: string;
  /** From 1; the fencing token, which never goes down. */
  readonly attempt: number;
  /** Attempts that failed since the call was last enqueued, expired leases included. */
  readonly failures: number;
  /** That of its quote, or its own if a trigger made it. */
  readonly stream: string;
  /** Its job; undefined for a call that sells credit. */
  readonly serviceId?: number;
  readonly jobIndex?: number;
}

/** A lease as its holder names it; it names the parts of a large result that came under it. */
export type LeaseName = Pick<CallLease, 'callId' | 'leaseId'>;

/** A leased call as a function of the database returns it. */
export function callLeaseOf(
  row: Pick<
    LeaseRow,
    'call_id' | 'lease_id' | 'attempt' | 'failures' | 'stream' | 'service_id' | 'job_index'
  >,
) {
  return {
    callId: row.call_id,
    leaseId: row.lease_id,
    attempt: row.attempt,
    failures: row.failures,
    stream: row.stream,
    serviceId: row.service_id,
    jobIndex: row.job_index,
  } satisfies CallLease;
}

/** A call that was just leased, with all that its runner receives. */
export interface LeasedCall extends CallLease {
  readonly serviceId: number;
  readonly jobIndex: number;
  readonly origin: LeasedOrigin;
  /** Of what was paid for, as `paidCallKey()` names it, or of the firing that made it, as `firingKey()` does. */
  readonly idempotencyKey: string;
  readonly leaseUntil: Date;
  /** The span of the request that bought it, if it was traced. */
  readonly traceparent: string | undefined;
  readonly contentType: string | undefined;
  /** Undefined if the body is missing: the call can never be delivered. */
  readonly body: Buffer | undefined;
}

export type LeasedOrigin =
  | {
      readonly kind: 'x402';
      readonly network: string;
      readonly asset: string;
      readonly symbol: string;
      readonly caller: string | undefined;
    }
  | Firing;

interface LeaseRow {
  call_id: number;
  lease_id: string;
  attempt: number;
  failures: number;
  stream: string;
  service_id: number;
  job_index: number;
  network: string | null;
  asset: string | null;
  symbol: string | null;
  caller: string | null;
  payment: string;
  lease_until: Date;
  traceparent: string | null;
  content_type: string | null;
  body: Buffer | null;
  trigger_kind: TriggerKind | null;
  trigger_name: string | null;
  trigger_id: string | null;
}

/** A job whose calls do not simply take their turn. */
export interface JobTurn {
  readonly serviceId: number;
  readonly jobIndex: number;
  /** The highest goes first, within a service. */
  readonly priority: number;
  /** How many calls of the job may be leased simultaneously; undefined for any number. */
  readonly maxConcurrent: number | undefined;
}

/**
 * Takes up to `max` calls that are due for these services, fewer where their bodies are large. Services share; within one, priority
 * decides, then age. None that is older than `maxAgeSecs`, since it was enqueued; its lease ends with that age at the latest.
 * Raw SQL: the runners' hot path. One simple-protocol message, because it locks rows that the lane may need.
 */
export async function leaseCalls(
  pool: pg.Pool,
  services: readonly number[],
  max: number,
  leaseSecs: number,
  jobs: readonly JobTurn[] = [],
  maxAgeSecs?: number,
): Promise<LeasedCall[]> {
  const list = [...new Set(services.map(Math.trunc))].join(',');
  const turns = jobs.map((job) => ({
    service_id: job.serviceId,
    job_index: job.jobIndex,
    priority: job.priority,
    max_concurrent: job.maxConcurrent,
  }));
  const { rows } = await pool.query<LeaseRow>(
    `select * from tollbook.lease_calls('{${list}}', ${Math.trunc(max)}, ${Math.trunc(leaseSecs)}, ${textLiteral(JSON.stringify(turns))}, true, ${maxAgeSecs ?? null})`,
  );
  return rows.map((row) => ({
    ...callLeaseOf(row),
    origin: firingOf(row) ?? paidOriginOf(row),
    idempotencyKey: row.payment,
    leaseUntil: row.lease_until,
    traceparent: row.traceparent ?? undefined,
    contentType: row.content_type ?? undefined,
    body: row.body ?? undefined,
  }));
}

/** What made a call that no payment has bought; undefined for a paid one. */
function firingOf(row: Pick<LeaseRow, 'trigger_kind' | 'trigger_name' | 'trigger_id'>): Firing | undefined {
  const { trigger_kind: kind, trigger_name: name, trigger_id: id } = row;
  return kind === null ? undefined : { kind, name: name ?? '', id: id ?? '' };
}

/** What a paid call has from its payment. */
export function paidOriginOf({
  network,
  asset,
  symbol,
  caller,
}: Pick<LeaseRow, 'network' | 'asset' | 'symbol' | 'caller'>) {
  return {
    kind: 'x402' as const,
    network: network ?? '',
    asset: asset ?? '',
    symbol: symbol ?? '',
    caller: caller ?? undefined,
  };
}

/** The id of a call that a trigger will make. */
export function nextCallId(pool: pg.Pool): Promise<number> {
  return callFunction(pool, 'next_call_id', []);
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

/**
 * Extends a lease, at most until its call is `maxAgeSecs` old; returns when it ends now, or undefined if the lease is no longer held, or the
 * call is as old as that.
 */
export async function extendLease(
  pool: pg.Pool,
  { callId, leaseId }: LeaseName,
  leaseSecs: number,
  maxAgeSecs: number,
): Promise<Date | undefined> {
  // raw SQL: a set that is empty if the lease is lost; every heartbeat of a runner runs it
  const { rows } = await pool.query<{ extend_lease: Date }>('select tollbook.extend_lease($1, $2, $3, $4)', [
    callId,
    leaseId,
    leaseSecs,
    maxAgeSecs,
  ]);
  return rows[0]?.extend_lease;
}

type CallRow = Pick<LeaseRow, 'call_id' | 'attempt' | 'failures' | 'stream' | 'service_id' | 'job_index'>;

/** The call of a lease; undefined if another lease holds the call, or if it has left the queue. */
export async function findLeasedCall(
  pool: pg.Pool,
  callId: number,
  leaseId: string,
): Promise<(CallLease & JobId) | undefined> {
  // raw SQL: prepared, because every completion waits for it, and planning it takes three times what running it does
  const { rows } = await pool.query<CallRow>({
    name: 'find_leased_call',
    text: `select call_id, attempt, failures, stream, service_id, job_index from tollbook.call
      where call_id = $1 and lease_id = $2 and status in ('leased', 'unpaid')`,
    values: [callId, leaseId],
  });
  const [row] = rows;
  return row && callLeaseOf({ ...row, lease_id: leaseId });
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

/** How often a busy runner refused the call since it was last enqueued. */
export async function readRefusals(db: LedgerDatabase, callId: number): Promise<number> {
  const calls = db.selectFrom('tollbook.call').select('refusals').where('call_id', '=', callId);
  return (await calls.executeTakeFirst())?.refusals ?? 0;
}

export type CallResult = NonNullable<Awaited<ReturnType<typeof readResult>>>;

/** The result of an attempt. `stored`: what is in the result store, and then `body` is empty. */
export async function readResult(db: LedgerDatabase, callId: number, attempt: number) {
  const row = await db
    .selectFrom('tollbook.call_result as result')
    .leftJoin('tollbook.result_upload as upload', (join) =>
      join.onRef('upload.call_id', '=', 'result.call_id').onRef('upload.lease_id', '=', 'result.lease_id'),
    )
    .select(['result.content_type', 'result.body', 'result.head', 'result.lease_id'])
    .select(['upload.bytes', 'upload.sha256'])
    .where('result.call_id', '=', callId)
    .where('result.attempt', '=', attempt)
    .executeTakeFirst();
  if (!row) return undefined;
  const { content_type, body, head, lease_id: leaseId, bytes, sha256 } = row;
  const stored = sha256 && bytes !== null ? { bytes, sha256: `0x${sha256.toString('hex')}` } : undefined;
  return { contentType: content_type ?? undefined, body, head: head ?? undefined, leaseId, stored };
}

/** When the result of an attempt was deleted; undefined for one that was not, or before this was noted. */
export async function findDeletion(
  db: LedgerDatabase,
  callId: number,
  attempt: number,
): Promise<Date | undefined> {
  const row = await db
    .selectFrom('tollbook.deleted_result')
    .select('deleted_at')
    .where('call_id', '=', callId)
    .where('attempt', '=', attempt)
    .executeTakeFirst();
  return row?.deleted_at;
}

/** Dead letters, oldest first: no attempt could deliver these calls, and the operator decides about them. */
export async function listDeadCalls(db: LedgerDatabase, limit: number, afterCallId = 0) {
  const rows = await db
    .selectFrom('tollbook.call')
    .select([
      'call_id',
      'stream',
      'trigger_kind',
      'trigger_name',
      'trigger_id',
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
    .where(isNotRefunded(db))
    .orderBy('call_id')
    .limit(limit)
    .execute();
  return rows.map((row) => ({ ...row, trigger: firingOf(row) }));
}

/** The call of a quote while it is not completed. */
export async function findCall(db: LedgerDatabase, callId: number) {
  return db
    .selectFrom('tollbook.call')
    .select(['call_id', 'stream', 'status', 'attempt'])
    .where('call_id', '=', callId)
    .executeTakeFirst();
}

export type WaitingCalls = Awaited<ReturnType<typeof readWaitingCalls>>[number];

/** By service the calls that a runner could take: due, and not leased or with a lease that has expired. Only services where one waits. */
export async function readWaitingCalls(pool: pg.Pool) {
  // raw SQL: jumps from job to job in the index, so that a long queue is not read to its end
  const { rows } = await pool.query<WaitingRow>(`
    with recursive job as (
      (select service_id, job_index from tollbook.call
        where status in ('ready', 'leased') order by service_id, waits, job_index limit 1)
      union all
      select next.* from job cross join lateral (
        (select 0 as turn, service_id, job_index from tollbook.call where status in ('ready', 'leased')
          and service_id = job.service_id and waits = false and job_index > job.job_index order by service_id, waits, job_index limit 1)
        union all
        (select 1, service_id, job_index from tollbook.call where status in ('ready', 'leased') and service_id > job.service_id
          order by service_id, waits, job_index limit 1)
        order by turn limit 1
      ) found(turn, service_id, job_index) cross join lateral (select found.service_id, found.job_index) next)
    select job.service_id, sum(waiting.calls)::int as calls, min(waiting.oldest_at) as oldest_at,
      (array_agg(waiting.call_id order by waiting.oldest_at))[1] as call_id,
      extract(epoch from now - min(waiting.oldest_at))::float8 * 1000 as waiting_ms,
      exists (select from tollbook.call where status = 'leased' and service_id = job.service_id and due_at > now) as is_leased
    from (select tollbook.clock() as now) moment, (select least(10000, 100000 / greatest(1, count(*))) as calls from job) most,
    job cross join lateral (
      select count(*) as calls, min(due_at) as oldest_at, (array_agg(call_id order by due_at))[1] as call_id from (
        select call_id, due_at from tollbook.call where status in ('ready', 'leased') and service_id = job.service_id
          and waits = false and job_index = job.job_index and due_at <= now order by due_at limit most.calls) few) waiting
    where waiting.calls > 0
    group by job.service_id, now order by job.service_id`);
  return rows.map((row) => ({
    serviceId: row.service_id,
    /** At most 10,000; with more than ten services fewer, 100,000 in all. */
    calls: row.calls,
    oldestCallId: row.call_id,
    oldestMs: Math.round(row.waiting_ms),
    /** Whether a runner has another call of the service now. */
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

/**
 * Notes that a runner answered 410 to a call; a call that was noted before counts as before. Returns how many calls of the runner
 * were first noted after `since` and within the last seconds.
 */
export function noteGone(
  pool: pg.Pool,
  noted: {
    readonly runner: string;
    readonly callId: number;
    readonly since: Date;
    readonly withinSecs: number;
  },
): Promise<number> {
  const { runner, callId, since, withinSecs } = noted;
  return callFunction(pool, 'note_runner_gone', [runner, callId, since, withinSecs]);
}
