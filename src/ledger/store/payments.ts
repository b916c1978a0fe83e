import { type Expression, type ExpressionBuilder, type RawBuilder, sql } from 'kysely';
import { jsonArrayFrom } from 'kysely/helpers/postgres';
import type pg from 'pg';
import { type LedgerDatabase, queriesOn } from './database.ts';
import { defined, hexBytes, hexText, quoteOf, time } from './expressions.ts';
import type { LedgerSchema } from './schema.ts';
import type { CallRow, PaymentRow, AccountCredit } from './projection.ts';

/** Of an address as text; no symbol is that long. */
const addressLength = 42;

/** A filter that is left out matches every payment. */
export interface PaymentFilters {
  /** Started at `from` or later, and before `to`. */
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
  /** The last event that the rows include. */
  readonly asOfSeq: number;
  readonly rows: readonly Row[];
}

/** The quote, or the stream of a recovered payment. */
interface OfQuote {
  readonly quote_digest: string;
}
export type ListedPayment = PaymentRow & OfQuote;
export type ListedCall = CallRow & OfQuote;

/** The generation that is read. */
export function activeGeneration(db: LedgerDatabase) {
  return db
    .selectFrom('tollbook.projection')
    .select('generation')
    .where(({ ref }) => ref('is_active'));
}

/** Of a call: its payment was not wholly refunded, by the read model. A dead letter that was needs no operator any more. */
export function isNotRefunded(db: LedgerDatabase) {
  return ({ exists, not, selectFrom }: ExpressionBuilder<LedgerSchema, 'tollbook.call'>) =>
    not(
      exists(
        selectFrom('tollbook.paid_call')
          .innerJoin('tollbook.payment', (join) =>
            join
              .onRef('tollbook.payment.generation', '=', 'tollbook.paid_call.generation')
              .onRef('tollbook.payment.seq', '=', 'tollbook.paid_call.seq'),
          )
          .select('tollbook.payment.seq')
          .where('tollbook.paid_call.generation', '=', activeGeneration(db))
          .whereRef('tollbook.paid_call.call_id', '=', 'tollbook.call.call_id')
          .where('tollbook.payment.state', '=', 'refunded'),
      ),
    );
}

/** Before the first payment at a time or later. Times never go back in the ledger, so a time is a sequence number. */
function firstSince(db: LedgerDatabase, from: Date): RawBuilder<number> {
  return sql`tollbook.first_payment_since(${activeGeneration(db)}, ${from})`;
}

/** Payments after a place in the ledger, in the order they were started. */
export async function listPayments(
  pool: pg.Pool,
  filters: PaymentFilters,
  afterSeq: number,
  limit: number,
): Promise<Page<ListedPayment>> {
  const page = paymentsOf(queriesOn(pool), filters)
    .where('seq', '>', afterSeq)
    .orderBy('tollbook.payment.seq')
    .limit(limit);
  return readPage(pool, page);
}

/** The latest payments, the newest first; those before a place in the ledger, where one is given. */
export async function listLatestPayments(
  pool: pg.Pool,
  filters: PaymentFilters,
  beforeSeq: number | undefined,
  limit: number,
): Promise<Page<ListedPayment>> {
  const page = paymentsOf(queriesOn(pool), filters)
    .$if(beforeSeq !== undefined, (query) => query.where('seq', '<', beforeSeq ?? 0))
    .orderBy('tollbook.payment.seq', 'desc')
    .limit(limit);
  return readPage(pool, page);
}

export function paymentsOf(db: LedgerDatabase, filters: PaymentFilters) {
  const { from, to, serviceId, jobIndex, payer, state, network, token } = filters;
  return db
    .selectFrom('tollbook.payment')
    .select(['seq', 'service_id', 'job_index', 'network', 'symbol', 'decimals', 'state'])
    .select(['call_id', 'refund_due', 'quote_source', 'last_seq'])
    .select(({ cast, ref }) => [
      quoteOf(ref('tollbook.payment.seq')).as('quote_digest'),
      hexText(ref('asset')).as('asset'),
      hexText(ref('payer')).as('payer'),
      hexText(ref('pay_to')).as('pay_to'),
      hexText(ref('transaction')).as('transaction'),
      hexText(ref('refund_transaction')).as('refund_transaction'),
      cast<string>('amount', 'text').as('amount'),
      cast<string>('refunded_amount', 'text').as('refunded_amount'),
      cast<string | null>('block_number', 'text').as('block_number'),
      time(ref('at')).as('at'),
      time(ref('settled_at')).as('settled_at'),
      time(ref('refunded_at')).as('refunded_at'),
      time(ref('refund_due_since')).as('refund_due_since'),
      time(ref('refund_started_at')).as('refund_started_at'),
      time(ref('refund_requested_at')).as('refund_requested_at'),
    ])
    .where('generation', '=', activeGeneration(db))
    .$if(from !== undefined, (query) => query.where('seq', '>=', firstSince(db, from ?? new Date(0))))
    .$if(to !== undefined, (query) => query.where('seq', '<', firstSince(db, to ?? new Date(0))))
    .where(({ and }) =>
      and(
        defined({
          service_id: serviceId,
          job_index: jobIndex,
          payer: payer === undefined ? undefined : hexBytes(payer),
          state,
          network,
          ...(token?.length === addressLength ? { asset: hexBytes(token) } : { symbol: token }),
        }),
      ),
    );
}

/** Paid calls after an id, in the order they were enqueued. */
export async function listPaidCalls(
  pool: pg.Pool,
  filters: {
    readonly status?: string | undefined;
    readonly serviceId?: number | undefined;
    readonly jobIndex?: number | undefined;
  },
  afterCallId: number,
  limit: number,
): Promise<Page<ListedCall>> {
  const db = queriesOn(pool);
  const page = db
    .selectFrom('tollbook.paid_call')
    .select(['call_id', 'seq', 'service_id', 'job_index', 'status', 'attempts'])
    .select(({ ref }) => [
      quoteOf(ref('tollbook.paid_call.seq')).as('quote_digest'),
      time(ref('enqueued_at')).as('enqueued_at'),
      time(ref('ended_at')).as('ended_at'),
    ])
    .where('generation', '=', activeGeneration(db))
    .where('call_id', '>', afterCallId)
    .where(({ and }) =>
      and(defined({ status: filters.status, service_id: filters.serviceId, job_index: filters.jobIndex })),
    )
    .orderBy('tollbook.paid_call.call_id')
    .limit(limit);
  return readPage(pool, page);
}

/** The earnings of each job on each day, by token; days are `YYYY-MM-DD`, UTC, and `from` and `to` are included. */
export async function listJobDays(
  pool: pg.Pool,
  filters: {
    readonly from: string;
    readonly to: string;
    readonly serviceId?: number | undefined;
    readonly jobIndex?: number | undefined;
  },
  limit: number,
) {
  const db = queriesOn(pool);
  const page = db
    .selectFrom('tollbook.job_day')
    .select(['service_id', 'job_index', 'network', 'asset', 'symbol', 'decimals', 'payments'])
    .select(['completed', 'dead_lettered', 'refunded'])
    .select(({ cast }) => [
      cast<string>('day', 'text').as('day'),
      cast<string>('amount', 'text').as('amount'),
      cast<string>('refunded_amount', 'text').as('refunded_amount'),
    ])
    .where('generation', '=', activeGeneration(db))
    .where('day', '>=', sql<Date>`${filters.from}::date`)
    .where('day', '<=', sql<Date>`${filters.to}::date`)
    .where(({ and }) => and(defined({ service_id: filters.serviceId, job_index: filters.jobIndex })))
    .where('payments', '>', 0)
    .orderBy('tollbook.job_day.day')
    .orderBy('service_id')
    .orderBy('job_index')
    .orderBy('network')
    .orderBy('asset')
    .limit(limit);
  return readPage(pool, page);
}

/** The rows of a query over the generation that is read, as JSON holds them, and the generation's cursor, from one statement. */
export async function readPage<Row>(pool: pg.Pool, page: Expression<Row>): Promise<Page<Row>> {
  const row = await queriesOn(pool)
    .selectFrom('tollbook.projection')
    .select('seq')
    .select(jsonArrayFrom(page).$castTo<Row[]>().as('page'))
    .where(({ ref }) => ref('is_active'))
    .executeTakeFirst();
  return { asOfSeq: row?.seq ?? 0, rows: row?.page ?? [] };
}

/** Accounts after an id, in the order of their ids; only the one with `name` where it is given. */
export function listAccountCredit(
  pool: pg.Pool,
  { name }: { readonly name?: string | undefined },
  afterId: number,
  limit: number,
): Promise<Page<AccountCredit>> {
  const db = queriesOn(pool);
  const page = db
    .selectFrom('tollbook.account_credit')
    .select(['account_id', 'name', 'last_seq'])
    .select(({ cast }) => [
      cast<string>('balance', 'text').as('balance'),
      cast<string>('held', 'text').as('held'),
      cast<string>('granted', 'text').as('granted'),
      cast<string>('topped_up', 'text').as('topped_up'),
      cast<string>('captured', 'text').as('captured'),
      cast<string>('expired', 'text').as('expired'),
    ])
    .where('generation', '=', activeGeneration(db))
    .where('account_id', '>', afterId)
    .where(({ and }) => and(defined({ name })))
    .orderBy('tollbook.account_credit.account_id')
    .limit(limit);
  return readPage(pool, page);
}
