import { sql } from 'kysely';
import type pg from 'pg';
import type { LedgerDatabase } from '../../ledger/store/database.ts';
import { activeGeneration } from '../../ledger/store/payments.ts';
import { callFunction, callTableFunction } from '../../ledger/store/functions.ts';

export type UnsettledCall = Awaited<ReturnType<typeof takeUnsettled>>[number];

/**
 * Takes up to `max` calls that are due, of those whose settlement is unknown (`pending`), or failed but may still land (`watched`). No runner has
 * them. The oldest come first. They become due again soon, even if this process ends.
 */
export async function takeUnsettled(pool: pg.Pool, max: number) {
  const rows = await callTableFunction(pool, 'take_unsettled', [max]);
  return rows.map((row) => ({
    callId: row.call_id,
    stream: row.stream,
    status: row.status,
    /** As `paymentKey()` names it. */
    payment: row.payment,
    /** How often it was delivered before its payment was taken back. */
    attempt: row.attempt,
    ageSecs: row.age_secs,
    /** The span of the request that bought it, if it was traced. */
    traceparent: row.traceparent ?? undefined,
  }));
}

/** Moves the next check of an unsettled call to `delayMs` from now. */
export function postponeUnsettled(pool: pg.Pool, callId: number, delayMs: number): Promise<void> {
  return callFunction(pool, 'postpone_unsettled', [callId, delayMs]);
}

/** Calls whose settlement is unknown, oldest first. */
export async function listUnsettled(db: LedgerDatabase, limit: number) {
  return db
    .selectFrom('tollbook.call')
    .select(['call_id', 'stream', 'payment', 'created_at'])
    .where('status', '=', 'pending')
    .orderBy('created_at')
    .limit(limit)
    .execute();
}

/** The calls of a quote that are not settled; a runner has the unpaid ones. */
export async function findUnsettled(db: LedgerDatabase, stream: string) {
  return db
    .selectFrom('tollbook.call')
    .select(['call_id', 'payment', 'status', 'attempt', 'caller'])
    .where('status', 'in', ['pending', 'watched', 'unpaid'])
    .where('stream', '=', stream)
    .execute();
}

/** Of a payer's history no more is read: payments are undecided for minutes, not for thousands of others. */
const newestOfPayer = 2_000;

/** How many of a payer's newest payments have an unknown outcome, or none at all `afterSecs` after their start. By the read models. */
export async function countUndecided(db: LedgerDatabase, payer: string, afterSecs: number): Promise<number> {
  const newest = db
    .selectFrom('tollbook.payment')
    .select(['state', 'at'])
    .where('generation', '=', activeGeneration(db))
    .where('payer', '=', Buffer.from(payer.slice(2), 'hex'))
    .orderBy('seq', 'desc')
    .limit(newestOfPayer);
  const { count } = await db
    .selectFrom(newest.as('newest'))
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where((e) =>
      e.or([
        e('state', '=', 'settlement_unknown'),
        e.and([
          e('state', '=', 'settling'),
          e('at', '<', sql<Date>`tollbook.clock() - ${afterSecs} * interval '1 second'`),
        ]),
      ]),
    )
    .executeTakeFirstOrThrow();
  return count;
}

/** How many payments without an outcome were started within `withinSecs`. */
export async function countPayable(db: LedgerDatabase, withinSecs: number): Promise<number> {
  const { count } = await db
    .selectFrom('tollbook.call')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('status', '=', 'pending')
    .where('created_at', '>', sql<Date>`tollbook.clock() - ${withinSecs} * interval '1 second'`)
    .executeTakeFirstOrThrow();
  return count;
}
