import type pg from 'pg';
import type { CallRow, PaymentRow } from './projection.ts';

/** What is wanted of the payments; everything left out is not asked for. */
export interface PaymentFilters {
  /** Started at this time or later, before that. */
  readonly from?: Date | undefined;
  readonly to?: Date | undefined;
  readonly serviceId?: number | undefined;
  readonly jobIndex?: number | undefined;
  readonly payer?: string | undefined;
  readonly state?: string | undefined;
  readonly network?: string | undefined;
  /** An asset's address or symbol. */
  readonly token?: string | undefined;
}

export interface Page<Row> {
  /** The last event that the rows know of. */
  readonly asOfSeq: number;
  readonly rows: readonly Row[];
}

/** A time as RFC 3339 UTC in milliseconds. */
export const time = (column: string, name = column): string =>
  `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as ${name}`;
/** The generation that is read. */
export const active = '(select generation from tollbook.projection where is_active)';

/** Conditions that number their own parameters: values never become SQL. */
export class Conditions {
  readonly values: unknown[] = [];
  readonly #texts: string[] = [];

  /** `text` names its value `?`; a condition without a value is not one. */
  add(text: string, value: unknown): this {
    if (value === undefined) return this;
    this.values.push(value);
    this.#texts.push(text.replaceAll('?', `$${this.values.length}`));
    return this;
  }

  get sql(): string {
    return this.#texts.map((text) => ` and ${text}`).join('');
  }
}

/** Times never run backwards in the ledger, so a time is a place in it: found along an index, where a filter reads all before. */
const firstSince = `coalesce((select first.seq from tollbook.payment first where first.generation = ${active} and first.at >= ?
  order by first.at, first.seq limit 1), 9223372036854775807)`;

/** Payments that come after a place in the ledger, in the order they were started. */
export async function listPayments(
  pool: pg.Pool,
  filters: PaymentFilters,
  afterSeq: number,
  limit: number,
): Promise<Page<PaymentRow>> {
  const { from, to, serviceId, jobIndex, payer, state, network, token } = filters;
  const where = new Conditions()
    .add('seq > ?', afterSeq)
    .add(`seq >= ${firstSince}`, from)
    .add(`seq < ${firstSince}`, to)
    .add('service_id = ?', serviceId)
    .add('job_index = ?', jobIndex)
    .add('payer = ?', payer)
    .add('state = ?', state)
    .add('network = ?', network)
    .add(token?.startsWith('0x') ? 'asset = ?' : 'symbol = ?', token);
  return readPage<PaymentRow>(
    pool,
    `select seq, quote_digest, ${time('at')}, service_id, job_index, network, asset, symbol, decimals, amount::text,
       payer, pay_to, state, transaction, block_number::text, call_id, ${time('settled_at')},
       ${time('refunded_at')}, refund_transaction, refund_due, ${time('refund_due_since')}, last_seq
     from tollbook.payment where generation = ${active}${where.sql} order by payment.seq limit ${Math.trunc(limit)}`,
    where.values,
  );
}

/** Paid calls beyond an id, in the order they were enqueued. */
export async function listPaidCalls(
  pool: pg.Pool,
  filters: {
    readonly status?: string | undefined;
    readonly serviceId?: number | undefined;
    readonly jobIndex?: number | undefined;
  },
  afterCallId: number,
  limit: number,
): Promise<Page<CallRow>> {
  const where = new Conditions()
    .add('call_id > ?', afterCallId)
    .add('status = ?', filters.status)
    .add('service_id = ?', filters.serviceId)
    .add('job_index = ?', filters.jobIndex);
  return readPage<CallRow>(
    pool,
    `select call_id, seq, quote_digest, service_id, job_index, status, attempts, ${time('enqueued_at')}, ${time('ended_at')}
     from tollbook.paid_call where generation = ${active}${where.sql} order by paid_call.call_id limit ${Math.trunc(limit)}`,
    where.values,
  );
}

export interface DayRow {
  /** `YYYY-MM-DD`, UTC. */
  readonly day: string;
  readonly service_id: number;
  readonly job_index: number;
  readonly network: string;
  readonly asset: string;
  readonly symbol: string;
  readonly decimals: number;
  readonly payments: number;
  readonly amount: string;
  readonly completed: number;
  readonly dead_lettered: number;
  readonly refunded: number;
  readonly refunded_amount: string;
}

/** What each job earned on each day, by token, from one day to another, both included. */
export async function listJobDays(
  pool: pg.Pool,
  filters: {
    readonly from: string;
    readonly to: string;
    readonly serviceId?: number | undefined;
    readonly jobIndex?: number | undefined;
  },
  limit: number,
): Promise<Page<DayRow>> {
  const where = new Conditions()
    .add('day >= ?::date', filters.from)
    .add('day <= ?::date', filters.to)
    .add('service_id = ?', filters.serviceId)
    .add('job_index = ?', filters.jobIndex);
  return readPage<DayRow>(
    pool,
    `select day::text, service_id, job_index, network, asset, symbol, decimals, payments, amount::text, completed, dead_lettered,
       refunded, refunded_amount::text
     from tollbook.job_day where generation = ${active}${where.sql} and payments > 0
     order by job_day.day, service_id, job_index, network, asset limit ${Math.trunc(limit)}`,
    where.values,
  );
}

/** The rows of a query over the generation that is read, and how far they are, from one statement. */
export async function readPage<Row>(
  pool: pg.Pool,
  text: string,
  values: readonly unknown[],
  place: 'seq' | 'credit_seq' = 'seq',
): Promise<Page<Row>> {
  const { rows } = await pool.query<{ seq: number; page: Row[] | null }>(
    `select projection.${place} as seq, (select json_agg(row_to_json(page)) from (${text}) page) as page
     from tollbook.projection where is_active`,
    [...values],
  );
  return { asOfSeq: rows[0]?.seq ?? 0, rows: rows[0]?.page ?? [] };
}
