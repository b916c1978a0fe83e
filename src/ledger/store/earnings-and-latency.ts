import { sql } from 'kysely';
import type pg from 'pg';
import { queriesOn } from './database.ts';
import { type Backlog, type BacklogRow, backlogOf } from './backlogs.ts';
import { activeGeneration } from './payments.ts';

/** What was earned in one token on one day, by all jobs: the day is `YYYY-MM-DD`, UTC, the amount in the token's smallest units. */
export type TokenDay = Awaited<ReturnType<typeof readTokenDays>>[number];

/** The earnings of days from `from` on, the newest day first: sums of the sums by job. */
export function readTokenDays(pool: pg.Pool, from: Date) {
  const db = queriesOn(pool);
  return db
    .selectFrom('tollbook.job_day')
    .select(['network', 'asset', 'symbol', 'decimals'])
    .select(({ fn, cast }) => [
      cast<string>('day', 'text').as('day'),
      cast<string>(fn.sum('amount'), 'text').as('amount'),
      cast<number>(fn.sum('payments'), 'bigint').as('payments'),
      cast<number>(fn.sum('completed'), 'bigint').as('completed'),
      cast<number>(fn.sum('dead_lettered'), 'bigint').as('deadLettered'),
      cast<number>(fn.sum('refunded'), 'bigint').as('refunded'),
    ])
    .where('generation', '=', activeGeneration(db))
    .where('day', '>=', sql<Date>`${from.toISOString().slice(0, 10)}::date`)
    .groupBy(['tollbook.job_day.day', 'network', 'asset', 'symbol', 'decimals'])
    .having(({ fn }) => fn.sum('payments'), '>', 0)
    .orderBy('tollbook.job_day.day', 'desc')
    .orderBy('network')
    .orderBy('symbol')
    .execute();
}

/** Milliseconds; null if it has no payment. */
export interface Percentiles {
  readonly p50: number | null;
  readonly p95: number | null;
}

export interface Latency {
  /** From the signed payment to its settlement. */
  readonly settled: Percentiles;
  /** From the call's entry into the outbox to its end. */
  readonly delivered: Percentiles;
}

/** How long the newest `payments` took. */
export async function readLatency(pool: pg.Pool, payments: number): Promise<Latency> {
  const db = queriesOn(pool);
  // raw SQL: percentiles over the newest rows alone
  const { rows } = await sql<{ settled: (number | null)[] | null; delivered: (number | null)[] | null }>`
    select percentile_cont(array[0.5, 0.95]) within group (order by settled_ms) as settled,
      percentile_cont(array[0.5, 0.95]) within group (order by delivered_ms) as delivered
    from (
      select extract(epoch from newest.settled_at - newest.at)::float8 * 1000 as settled_ms,
        extract(epoch from call.ended_at - call.enqueued_at)::float8 * 1000 as delivered_ms
      from (
        select generation, at, settled_at, call_id from tollbook.payment where generation = ${activeGeneration(db)}
        order by seq desc limit ${payments}) newest
      left join tollbook.paid_call call on call.generation = newest.generation and call.call_id = newest.call_id) times`.execute(
    db,
  );
  const [row] = rows;
  return { settled: percentilesOf(row?.settled), delivered: percentilesOf(row?.delivered) };
}

function percentilesOf(values: readonly (number | null)[] | null | undefined): Percentiles {
  return { p50: values?.[0] ?? null, p95: values?.[1] ?? null };
}

/** The largest number that is counted. */
export const countedUnknown = 1_000;

/** Payments whose settlement has no known outcome, as the read model has them. */
export async function readUnknownSettlements(pool: pg.Pool): Promise<Backlog> {
  const db = queriesOn(pool);
  // raw SQL: the age in milliseconds, by the database's clock
  const { rows } = await sql<BacklogRow>`
    select count(*), extract(epoch from tollbook.clock() - min(at))::float8 * 1000 as oldest_ms from (
      select at from tollbook.payment where generation = ${activeGeneration(db)} and state = 'settlement_unknown'
      order by seq limit ${countedUnknown}) unknown`.execute(db);
  return backlogOf(rows[0]);
}
