import type pg from 'pg';
import { queriesOn } from '../../ledger/store/database.ts';
import { hex, time } from '../../ledger/store/expressions.ts';
import { callFunction } from '../../ledger/store/functions.ts';

/** A reconciliation without its report. Times are RFC 3339 UTC. */
export interface ReconciliationRow {
  readonly id: number;
  readonly from: string;
  readonly to: string;
  /** Of the ledger that was read. */
  readonly size: number;
  readonly root: string;
  readonly result: 'clean' | 'open_items' | 'breaks';
  readonly breaks: number;
  readonly open_items: number;
  readonly report_sha256: string;
  readonly at: string;
}

/** Stores a report's text; returns its number. The same text again gets the number that it has. */
export function storeReconciliation(pool: pg.Pool, report: string): Promise<number> {
  return callFunction(pool, 'record_reconciliation', [report]);
}

/** Reconciliations after a number, in the order they were made. */
export function listReconciliations(
  pool: pg.Pool,
  afterId: number,
  limit: number,
): Promise<ReconciliationRow[]> {
  return rowsOf(pool).where('id', '>', afterId).orderBy('id').limit(limit).execute();
}

/** Reconciliations, the latest first; those before a number where one is given. */
export function latestReconciliations(
  pool: pg.Pool,
  beforeId: number | undefined,
  limit: number,
): Promise<ReconciliationRow[]> {
  return rowsOf(pool)
    .$if(beforeId !== undefined, (query) => query.where('id', '<', beforeId ?? 0))
    .orderBy('id', 'desc')
    .limit(limit)
    .execute();
}

function rowsOf(pool: pg.Pool) {
  return queriesOn(pool)
    .selectFrom('tollbook.reconciliation')
    .select(['id', 'size', 'root', 'result', 'breaks', 'open_items'])
    .select(({ ref }) => [
      time(ref('period_from')).as('from'),
      time(ref('period_to')).as('to'),
      hex(ref('sha256')).as('report_sha256'),
      time(ref('at')).as('at'),
    ]);
}

/** The reconciliation that was made last; undefined if none was made. */
export async function findLastReconciliation(
  pool: pg.Pool,
): Promise<Pick<ReconciliationRow, 'id' | 'from' | 'to' | 'breaks' | 'at'> | undefined> {
  return queriesOn(pool)
    .selectFrom('tollbook.reconciliation')
    .select(['id', 'breaks'])
    .select(({ ref }) => [
      time(ref('period_from')).as('from'),
      time(ref('period_to')).as('to'),
      time(ref('at')).as('at'),
    ])
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst();
}

/** The stored report of a period that read the most of the ledger; undefined if there is none. */
export async function findReportOf(
  pool: pg.Pool,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): Promise<{ readonly id: number; readonly report: string } | undefined> {
  return queriesOn(pool)
    .selectFrom('tollbook.reconciliation')
    .select(['id', 'report'])
    .where('period_from', '=', new Date(fromMs))
    .where('period_to', '=', new Date(toMs))
    .orderBy('size', 'desc')
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst();
}

/** The stored report with this SHA-256, as 0x and hex; undefined if there is none. */
export async function findReportByHash(
  pool: pg.Pool,
  sha256: string,
): Promise<{ readonly id: number; readonly report: string } | undefined> {
  return queriesOn(pool)
    .selectFrom('tollbook.reconciliation')
    .select(['id', 'report'])
    .where('sha256', '=', Buffer.from(sha256.slice(2), 'hex'))
    .executeTakeFirst();
}

/** The newest reports searched for a break. */
const mostSearched = 100;

/** The texts of the newest reports, the newest first. */
export async function* newestReports(pool: pg.Pool): AsyncGenerator<string> {
  const rows = await queriesOn(pool)
    .selectFrom('tollbook.reconciliation')
    .select('id')
    .orderBy('id', 'desc')
    .limit(mostSearched)
    .execute();
  for (const { id } of rows) {
    const found = await readReconciliation(pool, id);
    if (found) yield found.report;
  }
}

/** A report byte for byte; undefined if there is none with this number. */
export async function readReconciliation(
  pool: pg.Pool,
  id: number,
): Promise<{ readonly report: string; readonly sha256: string } | undefined> {
  return queriesOn(pool)
    .selectFrom('tollbook.reconciliation')
    .select('report')
    .select(({ ref }) => hex(ref('sha256')).as('sha256'))
    .where('id', '=', id)
    .executeTakeFirst();
}

/** The heads that stored reports are pinned to; a root in base64. */
export async function readReconciledRoots(
  pool: pg.Pool,
): Promise<readonly { readonly size: number; readonly root: string }[]> {
  return queriesOn(pool)
    .selectFrom('tollbook.reconciliation')
    .select(['size', 'root'])
    .distinct()
    .where('size', '>', 0)
    .execute();
}
