import type pg from 'pg';

/** How many there are, and how old the oldest is; 0 if there is none. */
export interface Backlog {
  readonly count: number;
  readonly oldestMs: number;
}

export interface BacklogRow {
  readonly count: number;
  readonly oldest_ms: number | null;
}

// a clock that was set back makes ages negative
export const backlogOf = (row: BacklogRow | undefined): Backlog => ({
  count: row?.count ?? 0,
  oldestMs: Math.max(0, row?.oldest_ms ?? 0),
});

/** What becomes of a service's calls. */
export interface ServiceDeliveries {
  readonly serviceId: number;
  /** Calls that a runner has now. */
  readonly leased: number;
  /** For how long the oldest call has not been delivered whose last delivery failed; 0 if there is none. */
  readonly oldestFailingMs: number;
}

/** By service, those with calls that wait or are leased. */
export async function readDeliveries(pool: pg.Pool): Promise<ServiceDeliveries[]> {
  // raw SQL: jumps from service to service in the index, so that a long queue is not read to its end
  const { rows } = await pool.query<{ service_id: number; leased: number; failing_ms: number | null }>(`
    with recursive service as (
      select min(service_id) as id from tollbook.call where status in ('ready', 'leased')
      union all
      select (select min(call.service_id) from tollbook.call where call.status in ('ready', 'leased') and call.service_id > service.id)
      from service where service.id is not null)
    select service.id as service_id,
      (select count(*) from tollbook.call where status = 'leased' and service_id = service.id and due_at > now) as leased,
      (select extract(epoch from now - min(created_at))::float8 * 1000 from tollbook.call
        where status in ('ready', 'leased') and (failures > 0 or last_reason = 'status_503') and service_id = service.id) as failing_ms
    from (select tollbook.clock() as now) moment, service where service.id is not null
    order by service.id`);
  return rows.map(({ service_id: serviceId, leased, failing_ms: failingMs }) => ({
    serviceId,
    leased,
    oldestFailingMs: Math.max(0, failingMs ?? 0),
  }));
}

/** Settlements without a known outcome: their calls wait for it, or a runner has them already. */
export async function readOpenSettlements(pool: pg.Pool): Promise<Backlog> {
  // raw SQL: one statement over both tables; the limits of the configuration bound the calls, and few settlements are taken back
  const { rows } = await pool.query<BacklogRow>(`
    select count(*), extract(epoch from tollbook.clock() - min(created_at))::float8 * 1000 as oldest_ms from (
      select created_at from tollbook.call where status = 'pending'
      union all select created_at from tollbook.follow_up where topic = 'resolve') open`);
  return backlogOf(rows[0]);
}

/** Refunds that were started and have not ended, also of payments that were taken back since. */
export async function readStartedRefunds(pool: pg.Pool): Promise<Backlog> {
  // raw SQL: the interval's epoch; an index has these alone
  const { rows } = await pool.query<BacklogRow>(`
    select count(*), extract(epoch from tollbook.clock() - min(refund_started_at))::float8 * 1000 as oldest_ms from tollbook.payment
      where refund_started_at is not null and generation = (select generation from tollbook.projection where is_active)`);
  return backlogOf(rows[0]);
}

const mostCallbacks = 10_000;

/** Callbacks that wait to be sent, for the first time or again: at most 10,000 are counted. Their age is that of the event that they tell. */
export async function readDueCallbacks(pool: pg.Pool): Promise<Backlog> {
  // raw SQL: a limit inside of an aggregate
  const { rows } = await pool.query<BacklogRow>(
    `select count(*)::int, extract(epoch from tollbook.clock() - min(seen_at))::float8 * 1000 as oldest_ms
     from (select seen_at from tollbook.callback where due_at is not null limit ${mostCallbacks}) due`,
  );
  return backlogOf(rows[0]);
}

/** Credit that is held for completions under way, of all processes. */
export async function readHolds(pool: pg.Pool): Promise<Backlog> {
  // raw SQL: the interval's epoch; a hold lives as long as its completion, so there are few
  const { rows } = await pool.query<BacklogRow>(
    'select count(*), extract(epoch from tollbook.clock() - min(created_at))::float8 * 1000 as oldest_ms from tollbook.chat_hold',
  );
  return backlogOf(rows[0]);
}
