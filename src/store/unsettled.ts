import type pg from 'pg';
import type { LedgerDatabase } from './database.ts';

/** A call whose settlement is open: `held` while nobody knows, `watched` where it is said to have failed. */
export interface UnsettledCall {
  readonly callId: number;
  /** The quote's digest. */
  readonly stream: string;
  readonly status: 'held' | 'watched';
  /** As `paymentKey()` names it. */
  readonly payment: string;
  readonly ageSecs: number;
}

interface UnsettledRow {
  call_id: number;
  stream: string;
  status: 'held' | 'watched';
  payment: string;
  age_secs: number;
}

/**
 * Takes up to `max` open settlements that are due, oldest first. Others find them again soon, whatever becomes of this
 * process. Sent as one simple-protocol message: it locks rows that the lane may want.
 */
export async function takeUnsettled(pool: pg.Pool, max: number): Promise<UnsettledCall[]> {
  const { rows } = await pool.query<UnsettledRow>(
    `select * from tollbook.take_unsettled(${Math.trunc(max)})`,
  );
  return rows.map((row) => ({
    callId: row.call_id,
    stream: row.stream,
    status: row.status,
    payment: row.payment,
    ageSecs: row.age_secs,
  }));
}

/** Moves the next look at an open settlement to `delayMs` from now. */
export async function postponeUnsettled(pool: pg.Pool, callId: number, delayMs: number): Promise<void> {
  await pool.query(`select tollbook.postpone_unsettled(${Math.trunc(callId)}, ${Math.trunc(delayMs)})`);
}

/** Settlements that nobody knows the outcome of, oldest first. */
export async function listUnsettled(db: LedgerDatabase, limit: number) {
  return db
    .selectFrom('tollbook.call')
    .select(['call_id', 'stream', 'payment', 'created_at'])
    .where('status', '=', 'held')
    .orderBy('created_at')
    .limit(limit)
    .execute();
}

/** The calls of a quote that wait for a settlement. */
export async function findUnsettled(db: LedgerDatabase, stream: string) {
  return db
    .selectFrom('tollbook.call')
    .select(['call_id', 'payment', 'status'])
    .where('status', 'in', ['held', 'watched'])
    .where('stream', '=', stream)
    .execute();
}
