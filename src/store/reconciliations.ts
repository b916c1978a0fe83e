import type pg from 'pg';

/** A reconciliation that was made, without its report. Times are RFC 3339 UTC. */
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

/** Keeps a report's text; returns its number. The same text again gets the number that it has. */
export async function storeReconciliation(pool: pg.Pool, report: string): Promise<number> {
  const { rows } = await pool.query<{ id: number }>('select tollbook.record_reconciliation($1) as id', [
    report,
  ]);
  const id = rows[0]?.id;
  if (id === undefined) throw new Error('the reconciliation was not kept');
  return id;
}

const time = (column: string, name: string): string =>
  `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as "${name}"`;

/** Reconciliations beyond a number, in the order they were made. */
export async function listReconciliations(
  pool: pg.Pool,
  afterId: number,
  limit: number,
): Promise<ReconciliationRow[]> {
  const { rows } = await pool.query<ReconciliationRow>(
    `select id, ${time('period_from', 'from')}, ${time('period_to', 'to')}, size, root, result, breaks, open_items,
       encode(sha256, 'hex') as report_sha256, ${time('at', 'at')}
     from tollbook.reconciliation where id > $1 order by id limit $2`,
    [afterId, limit],
  );
  return rows;
}

/** A report as it was made, to the byte; undefined where there is none of that number. */
export async function readReconciliation(
  pool: pg.Pool,
  id: number,
): Promise<{ readonly report: string; readonly sha256: string } | undefined> {
  const { rows } = await pool.query<{ report: string; sha256: string }>(
    `select report, encode(sha256, 'hex') as sha256 from tollbook.reconciliation where id = $1`,
    [id],
  );
  return rows[0];
}
