import type pg from 'pg';
import { DamagedLedgerError } from './export.ts';
import { ledgerTables } from './schema.ts';

/** The tables and their events, in one snapshot. */
export interface RowSnapshot {
  readonly client: Pick<pg.Pool, 'query'>;
  /** The generation of the read models that is read. */
  readonly generation: number;
  /** The last event that it includes. */
  readonly seq: number;
  readonly hasPostings: boolean;
  /** The last event of the ledger. */
  readonly head: number;
}

/** A row that is not the fold of the events; `stored` or `expected` is null if there is no such row. */
export interface WrongRow {
  readonly table: string;
  readonly expected: Readonly<Record<string, unknown>> | null;
  readonly stored: Readonly<Record<string, unknown>> | null;
}

/** How many of these rows are expected and not there. */
export function missingIn(wrong: readonly WrongRow[]): number {
  return wrong.filter(({ stored }) => stored === null).length;
}

/** Columns of a row as its table has them: bytes as `\x` and hexadecimal digits, times as RFC 3339. */
export type ExpectedRow = Readonly<Record<string, unknown>>;

/** Does something with the tables of one moment. It writes nothing. */
export async function withStoredRows<T>(
  pool: pg.Pool,
  work: (snapshot: RowSnapshot) => Promise<T>,
): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query('begin isolation level repeatable read read only');
    // a sum over millions of rows
    await client.query(`set local statement_timeout = '10min'`);
    // a page of rows is compared faster than its statement is compiled
    await client.query('set local jit = off');
    await client.query(`set local idle_in_transaction_session_timeout = '1min'`);
    const { rows } = await client.query<Omit<RowSnapshot, 'client'>>(
      `select generation, seq, has_postings as "hasPostings", (select coalesce(max(seq), 0) from tollbook.event where lane_id = 1) as head
        from tollbook.projection where is_active`,
    );
    const [active] = rows;
    if (!active || rows.length > 1)
      throw new DamagedLedgerError('projection: the read models have no active generation');
    return await work({ client, ...active });
  } finally {
    await client.query('rollback').catch(() => {});
    client.release();
  }
}

/** The streams of these types of events within a part of the ledger. */
export async function readStreamsOf(
  { client }: RowSnapshot,
  types: readonly string[],
  afterSeq: number,
  lastSeq: number,
): Promise<string[]> {
  const { rows } = await client.query<{ stream: string }>(
    `select tollbook.stream_name(stream) as stream from tollbook.event
      where lane_id = 1 and seq > $1 and seq <= $2 and type = any ($3::text[]) group by stream`,
    [afterSeq, lastSeq, types],
  );
  return rows.map(({ stream }) => stream);
}

/** The leaves of these types of events within a part of the ledger, in order. */
export async function readLeavesOf(
  { client }: RowSnapshot,
  types: readonly string[],
  afterSeq: number,
  lastSeq: number,
): Promise<string[]> {
  const { rows } = await client.query<{ leaf: string }>(
    `select tollbook.leaf_text(event) as leaf from tollbook.event
      where lane_id = 1 and seq > $1 and seq <= $2 and type = any ($3::text[]) order by seq`,
    [afterSeq, lastSeq, types],
  );
  return rows.map(({ leaf }) => leaf);
}

/** Tables whose rows are folded from events: the key of a row, and the columns that the events do not determine. */
const foldedTables = {
  // earlier versions counted events that change nothing of a payment, with some steps and not with others
  payment: { key: 'seq', isGenerated: true, notCompared: ['last_seq'] },
  paid_call: { key: 'call_id', isGenerated: true, notCompared: [] },
  completion: { key: 'account_id, seq', isGenerated: true, notCompared: [] },
  account_credit: { key: 'account_id', isGenerated: true, notCompared: [] },
  account: {
    key: 'account_id',
    isGenerated: false,
    notCompared: ['created_at', 'recorded_at', 'disabled_at', 'closed_at'],
  },
  chat_hold: {
    key: 'chat_id',
    isGenerated: false,
    notCompared: ['process_id', 'budget_from', 'started_at', 'created_at'],
  },
  credit_request: { key: 'request_id', isGenerated: false, notCompared: ['created_at'] },
} as const satisfies Readonly<Record<string, FoldedBy>>;
export type FoldedTable = keyof typeof foldedTables;
type GeneratedTable = 'payment' | 'paid_call' | 'completion' | 'account_credit';

interface FoldedBy {
  readonly key: string;
  /** Whether a row belongs to a generation of the read models. */
  readonly isGenerated: boolean;
  readonly notCompared: readonly string[];
}

/** Of these rows the first that are missing or differ. */
export async function findWrongRows(
  { client, generation }: RowSnapshot,
  table: FoldedTable,
  expected: readonly ExpectedRow[],
): Promise<WrongRow[]> {
  if (expected.length === 0) return [];
  const { key, isGenerated }: FoldedBy = foldedTables[table];
  const given = isGenerated ? expected.map((row) => ({ generation, ...row })) : expected;
  const columns = comparedColumns(table);
  const of = (row: string): string => columns.map((column) => `${row}.${column}`).join(', ');
  const { rows } = await client.query<WrongRow>(
    `select '${table}' as "table", ${asJson('e', columns)} as expected,
        case when s.${columns[0]} is not null then ${asJson('s', columns)} end as stored
      from json_populate_recordset(null::tollbook.${table}, $1) e
      left join tollbook.${table} s using (${isGenerated ? 'generation, ' : ''}${key})
      where row(${of('e')}) is distinct from row(${of('s')}) limit 20`,
    [JSON.stringify(given)],
  );
  return rows;
}

/** The first rows whose keys are none of these. */
export async function findOtherRows(
  { client }: RowSnapshot,
  table: 'account' | 'chat_hold' | 'credit_request',
  keys: readonly (string | number)[],
  condition = 'true',
): Promise<WrongRow[]> {
  const { key } = foldedTables[table];
  const { rows } = await client.query<WrongRow>(
    `select '${table}' as "table", null as expected, ${asJson('s', comparedColumns(table))} as stored
      from tollbook.${table} s
      where ${condition} and not exists (select from unnest($1::text[]) known where known = s.${key}::text) limit 20`,
    [keys],
  );
  return rows;
}

function comparedColumns(table: FoldedTable): string[] {
  const { notCompared: others }: FoldedBy = foldedTables[table];
  return Object.keys(ledgerTables[`tollbook.${table}`]).filter((column) => !others.includes(column));
}

/** Bytes as `\x` and hexadecimal digits, times as RFC 3339. A role that may not read a whole row reads these columns. */
function asJson(row: string, columns: readonly string[]): string {
  return `json_build_object(${columns.map((column) => `'${column}', ${row}.${column}`).join(', ')})`;
}

/** Rows of payments within a part of the ledger that no event there has started. */
export async function findStrayPayments(
  { client, generation }: RowSnapshot,
  afterSeq: number,
  lastSeq: number,
  started: readonly number[],
): Promise<WrongRow[]> {
  const { rows } = await client.query<WrongRow>(
    `select 'payment' as "table", null as expected, to_json(s) as stored from tollbook.payment s
      where generation = $1 and seq > $2 and seq <= $3 and seq <> all ($4::bigint[]) limit 20`,
    [generation, afterSeq, lastSeq, started],
  );
  return rows;
}

/** How many rows a table has, which finds rows that no event has made. */
export async function countRows({ client, generation }: RowSnapshot, table: GeneratedTable): Promise<number> {
  const { rows } = await client.query<{ n: number }>(
    `select count(*) as n from tollbook.${table} where generation = $1`,
    [generation],
  );
  return rows[0]?.n ?? 0;
}

/** The first rows without an origin: calls without their payment, completions without their admission. */
export async function findStrayRows(
  { client, generation }: RowSnapshot,
  table: Exclude<GeneratedTable, 'payment'>,
): Promise<WrongRow[]> {
  const { rows } = await client.query<WrongRow>(
    `select '${table}' as "table", null as expected, to_json(s) as stored from tollbook.${table} s
      where s.generation = $1 and not exists (${origins[table]}) limit 20`,
    [generation],
  );
  return rows;
}

const origins = {
  paid_call: `select from tollbook.payment p
    where p.generation = s.generation and p.seq = s.seq and p.call_id = s.call_id`,
  completion: `select from tollbook.event e where e.lane_id = 1 and e.seq = s.seq and e.type = 'chat_admitted'
    and (e.data::json->>'account_id')::bigint = s.account_id`,
  account_credit: `select from tollbook.event e where e.type = 'credit_account_opened'
    and (e.data::json->>'account_id')::bigint = s.account_id`,
} as const;

/**
 * Sums of other read models that are not the sums of their rows, which are compared with the events: earnings of a day with the
 * payments, payees with the payments, usage of a day with the completions. A sum of nothing may have a row or none.
 */
export async function findWrongSums({ client, generation }: RowSnapshot): Promise<WrongRow[]> {
  const found: WrongRow[] = [];
  for (const text of sums) {
    const { rows } = await client.query<WrongRow>(`${text} limit 20`, [generation]);
    found.push(...rows);
  }
  return found;
}

const sums = [
  `select 'job_day' as "table", to_json(e) as expected, to_json(s) as stored
    from (
      select (settled_at at time zone 'UTC')::date as day, service_id, job_index, network, '0x' || encode(asset, 'hex') as asset,
        array_agg(distinct symbol || ' ' || decimals) as units, count(*) as payments, sum(amount) as amount,
        count(*) filter (where state = 'completed') as completed,
        count(*) filter (where state = 'dead_lettered') as dead_lettered,
        count(*) filter (where state = 'refunded') as refunded,
        sum(refunded_amount) as refunded_amount
      from tollbook.payment
      where generation = $1 and settled_at is not null and service_id is not null group by 1, 2, 3, 4, 5
    ) e full join (select * from tollbook.job_day where generation = $1) s
      on (s.day, s.service_id, s.job_index, s.network, s.asset) = (e.day, e.service_id, e.job_index, e.network, e.asset)
    where (coalesce(e.payments, 0), coalesce(e.amount, 0), coalesce(e.completed, 0), coalesce(e.dead_lettered, 0),
        coalesce(e.refunded, 0), coalesce(e.refunded_amount, 0))
      is distinct from (coalesce(s.payments, 0), coalesce(s.amount, 0), coalesce(s.completed, 0), coalesce(s.dead_lettered, 0),
        coalesce(s.refunded, 0), coalesce(s.refunded_amount, 0))
      or s.symbol || ' ' || s.decimals <> all (e.units)`,
  `select 'payee' as "table", to_json(e) as expected, to_json(s) as stored
    from (
      select network, '0x' || encode(asset, 'hex') as asset, '0x' || encode(pay_to, 'hex') as pay_to,
        array_agg(distinct symbol || ' ' || decimals) as units
      from tollbook.payment where generation = $1 group by 1, 2, 3
    ) e full join (select * from tollbook.payee where generation = $1) s
      on (s.network, s.asset, s.pay_to) = (e.network, e.asset, e.pay_to)
    where e.network is null or s.network is null or s.symbol || ' ' || s.decimals <> all (e.units)`,
  `select 'usage_day' as "table", to_json(e) as expected, to_json(s) as stored
    from (
      select account_id, (at at time zone 'UTC')::date as day, model, key_id,
        count(*) filter (where status not in ('running', 'failed')) as requests, count(*) filter (where status = 'failed') as failed,
        coalesce(sum(prompt_tokens), 0) as prompt_tokens, coalesce(sum(completion_tokens), 0) as completion_tokens,
        coalesce(sum(cached_tokens), 0) as cached_tokens, coalesce(sum(cost), 0) as cost
      from tollbook.completion where generation = $1 group by 1, 2, 3, 4
    ) e full join (select * from tollbook.usage_day where generation = $1) s using (account_id, day, model, key_id)
    where (coalesce(e.requests, 0), coalesce(e.failed, 0), coalesce(e.prompt_tokens, 0), coalesce(e.completion_tokens, 0),
        coalesce(e.cached_tokens, 0), coalesce(e.cost, 0))
      is distinct from (coalesce(s.requests, 0), coalesce(s.failed, 0), coalesce(s.prompt_tokens, 0),
        coalesce(s.completion_tokens, 0), coalesce(s.cached_tokens, 0), coalesce(s.cost, 0))`,
];
