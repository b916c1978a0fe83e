import { sql } from 'kysely';
import type pg from 'pg';
import type { EventOf, EventType, RecordedEvent } from '../../ledger/rules/event.ts';
import type { Caip2 } from '../../base/values/primitives.ts';
import { queriesOn } from '../../ledger/store/database.ts';
import { hexBytes, hexText, isOfStreams, quoteOf, streamName, time } from '../../ledger/store/expressions.ts';
import { type Backlog, backlogOf, type BacklogRow } from '../../ledger/store/backlogs.ts';
import { activeGeneration, readPage } from '../../ledger/store/payments.ts';
import { decoded, leavesIn } from '../../ledger/store/streams.ts';
import type { RowSnapshot } from '../../ledger/store/stored-rows.ts';

/**
 * Payments for which a refund is due, after a place in the ledger, in the order they were started. A payment without a call
 * is listed a minute after it was settled: until then the projection may not have read its call yet. Times are RFC 3339, amounts decimal
 * strings.
 */
export async function listRefundsDue(pool: pg.Pool, afterSeq: number, limit: number) {
  const db = queriesOn(pool);
  const page = db
    .selectFrom(db.selectNoFrom(sql<Date>`tollbook.clock()`.as('now')).as('clock'))
    .crossJoin('tollbook.payment as payment')
    .crossJoinLateral((from) =>
      from
        .selectFrom('tollbook.event as event')
        .select(({ ref }) => streamName(ref('event.stream')).as('quote_digest'))
        .select(({ ref }) =>
          sql<string>`coalesce(${ref('event.data')}::json->'payment'->>'nonce', ${ref('event.data')}::json->>'payment_nonce')`.as(
            'payment_nonce',
          ),
        )
        .where('event.lane_id', '=', 1)
        .whereRef('event.seq', '=', 'payment.seq')
        .offset(sql.lit(0))
        .as('started'),
    )
    .select([
      'payment.seq',
      'started.quote_digest',
      'started.payment_nonce',
      'service_id',
      'job_index',
      'network',
    ])
    .select(['symbol', 'decimals', 'call_id', 'quote_source'])
    // a refund is due for settled payments only, which have a transaction
    .select(({ cast, ref }) => [
      hexText(ref('transaction').$notNull()).as('transaction'),
      hexText(ref('payment.asset')).as('asset'),
      hexText(ref('payer')).as('payer'),
      hexText(ref('pay_to')).as('pay_to'),
      ref('refund_due').$notNull().as('why'),
      // what is left to refund, of what was paid
      sql<string>`(${ref('amount')} - ${ref('refunded_amount')})::text`.as('amount'),
      cast<string>('amount', 'text').as('paid_amount'),
      cast<string>('refunded_amount', 'text').as('refunded_amount'),
      // null if only the facilitator or the operator reported the payment
      cast<string | null>('block_number', 'text').as('block_number'),
      time(ref('refund_due_since').$notNull()).as('since'),
      sql<number>`greatest(0, floor(extract(epoch from ${ref('clock.now')} - ${ref('refund_due_since')})))::bigint`.as(
        'age_secs',
      ),
    ])
    .where('generation', '=', activeGeneration(db))
    .where('refund_due', 'is not', null)
    .where('payment.seq', '>', afterSeq)
    .where(({ eb, or, ref }) =>
      or([
        eb('refund_due', 'in', ['dead_lettered', 'recovered', 'granted']),
        eb('refund_due_since', '<', sql<Date>`${ref('clock.now')} - interval '1 minute'`),
      ]),
    )
    .orderBy('payment.seq')
    .limit(limit);
  return readPage(pool, page);
}

/** The largest number that is counted. */
export const countedOwed = 1_000;

/** Refunds that are due, without those of dead letters, which may still be sent again. Payments without a call count as in the list. */
export async function readRefundsOwed(pool: pg.Pool): Promise<Backlog> {
  const db = queriesOn(pool);
  // raw SQL: the age in milliseconds, by the database's clock
  const { rows } = await sql<BacklogRow>`
    select count(*), extract(epoch from tollbook.clock() - min(since))::float8 * 1000 as oldest_ms from (
      select refund_due_since as since from tollbook.payment
      where generation = ${activeGeneration(db)} and refund_due is not null
        and (refund_due in ('dead_lettered', 'recovered', 'granted') or refund_due_since < tollbook.clock() - interval '1 minute')
        and not exists (select from tollbook.call where call.call_id = payment.call_id and status = 'dead')
      order by seq limit ${countedOwed}) owed`.execute(db);
  return backlogOf(rows[0]);
}

export type RefundDueRow = Awaited<ReturnType<typeof listRefundsDue>>['rows'][number];

const decidingTypes = `'dead_lettered', 'payment_recovered', 'settlement_disproved', 'settlement_reorged', 'refund_request_granted'`;

/**
 * The streams whose payments may have to be refunded, by the types of their events alone: with a dead letter, a recovered payment, a settlement
 * that did not stand, a granted request, or more settlements than calls. With `afterSeq` only streams with events after it, and all of those that began before.
 */
export async function findStreamsThatMayOwe(
  { client, seq }: Pick<RowSnapshot, 'client' | 'seq'>,
  afterSeq = 0,
): Promise<string[]> {
  const { rows } = await client.query<{ stream: string }>(
    `select tollbook.stream_name(stream) as stream from tollbook.event
      where lane_id = 1 and seq <= $1 and ${
        afterSeq === 0 ? `type in (${decidingTypes}, 'payment_settled', 'enqueued')` : `seq > ${afterSeq}`
      }
      group by stream
      having bool_or(type in (${decidingTypes}))
        or count(*) filter (where type = 'payment_settled') > count(*) filter (where type = 'enqueued')
        or (${afterSeq} > 0 and octet_length(stream) = 32 and min(version) > 1)`,
    [seq],
  );
  return rows.map(({ stream }) => stream);
}

/** A payment with a refund due in the read models: its quote, and the last event of that stream. */
export interface DueStream {
  readonly quote_digest: string;
  readonly version: number;
  readonly last_seq: number;
}

/** Every payment with a refund due in the read models. */
export async function readDueStreams({ client, generation, seq }: RowSnapshot): Promise<DueStream[]> {
  const { rows } = await client.query<DueStream>(
    `select tollbook.stream_name(started.stream) as quote_digest, last.version, last.seq as last_seq
      from tollbook.payment
      join tollbook.event started on started.lane_id = 1 and started.seq = payment.seq
      cross join lateral (
        select version, seq from tollbook.event
        where event.stream = started.stream and event.seq <= $2 order by version desc limit 1) last
      where generation = $1 and refund_due is not null`,
    [generation, seq],
  );
  return rows;
}

/** What the read models say of the refunds of these payments, by the event that started each; nothing of those of which they say none. */
export async function readStoredDues(
  { client, generation }: RowSnapshot,
  seqs: readonly number[],
): Promise<ReadonlyMap<number, Pick<RefundDueRow, 'why' | 'since'>>> {
  const { rows } = await client.query<Pick<RefundDueRow, 'seq' | 'why' | 'since'>>(
    `select seq, refund_due as why, to_char(refund_due_since at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as since from tollbook.payment
      where generation = $1 and refund_due is not null and refund_due_since is not null and seq = any ($2::bigint[])`,
    [generation, seqs],
  );
  return new Map(rows.map(({ seq, ...due }) => [seq, due]));
}

const mostStarted = 10_000;

/** The streams with a refund that was started and has not ended, the oldest first: at most 10,000. */
export async function listStartedRefunds(pool: pg.Pool): Promise<string[]> {
  const db = queriesOn(pool);
  const rows = await db
    .selectFrom('tollbook.payment')
    .select(({ ref }) => quoteOf(ref('tollbook.payment.seq')).as('stream'))
    .where('generation', '=', activeGeneration(db))
    .where('refund_started_at', 'is not', null)
    .orderBy('refund_started_at')
    .limit(mostStarted)
    .execute();
  return rows.map(({ stream }) => stream);
}

/** The quotes of payments for which a refund of this amount or more to this payer is due. */
export async function findRefundsDueTo(
  pool: pg.Pool,
  owed: { readonly network: Caip2; readonly asset: string; readonly payer: string; readonly amount: bigint },
): Promise<string[]> {
  const db = queriesOn(pool);
  const rows = await db
    .selectFrom('tollbook.payment')
    .select(({ ref }) => quoteOf(ref('tollbook.payment.seq')).as('quote_digest'))
    .where('generation', '=', activeGeneration(db))
    .where('refund_due', 'is not', null)
    .where('network', '=', owed.network)
    .where('asset', '=', hexBytes(owed.asset))
    .where('payer', '=', hexBytes(owed.payer))
    .where(({ eb, ref }) =>
      eb(sql<string>`${ref('amount')} - ${ref('refunded_amount')}`, '>=', String(owed.amount)),
    )
    .orderBy('seq')
    .limit(100)
    .execute();
  return rows.map(({ quote_digest }) => quote_digest);
}

export type KnownPayee = Awaited<ReturnType<typeof listPayees>>[number];

/** Every payee of a network, with each of its tokens. */
export async function listPayees(pool: pg.Pool, network: Caip2) {
  const db = queriesOn(pool);
  return db
    .selectFrom('tollbook.payee')
    .select(['asset', 'pay_to', 'symbol', 'decimals'])
    .where('generation', '=', activeGeneration(db))
    .where('network', '=', network)
    .orderBy('asset')
    .orderBy('pay_to')
    .execute();
}

/** Every token that a payee was paid in. */
export async function listTokens(pool: pg.Pool) {
  const db = queriesOn(pool);
  return db
    .selectFrom('tollbook.payee')
    .select(['network', 'asset', 'symbol', 'decimals'])
    .distinct()
    .where('generation', '=', activeGeneration(db))
    .execute();
}

/** Records of a span of time: from the first moment on, and before the other one. */
export interface RecordedWithin {
  readonly fromMs?: number | undefined;
  readonly toMs?: number | undefined;
}

/** Recorded sweeps, the newest first. */
export const listSweeps = listOf('sweep:', 'operator_sweep_recorded');

/** The operators' records of unexplained transfers and their reversals, the newest first. */
export const listTransfers = listOf('transfer:', 'operator_transfer_recorded', 'operator_transfer_reversed');

/** The recorded costs of the operator's transactions, and their reversals, the newest first. */
export const listCosts = listOf('cost:', 'transaction_cost_recorded', 'operator_cost_reversed');

/** Reads the newest events of these types in the streams whose names begin so. */
function listOf<Type extends EventType>(beginning: string, ...types: readonly Type[]) {
  const isListed = (event: RecordedEvent): event is EventOf<Type> =>
    types.some((type) => type === event.type);
  return async (pool: pg.Pool, limit: number, within: RecordedWithin = {}): Promise<EventOf<Type>[]> =>
    (await listEvents(pool, beginning, limit, within)).filter(isListed);
}

/** The newest events of the streams whose names begin so; the beginning ends with a colon. */
async function listEvents(
  pool: pg.Pool,
  beginning: string,
  limit: number,
  { fromMs, toMs }: RecordedWithin,
): Promise<RecordedEvent[]> {
  return decoded(
    leavesIn(queriesOn(pool))
      .where(isOfStreams(beginning))
      .$if(fromMs !== undefined, (query) => query.where('at', '>=', new Date(fromMs ?? 0)))
      .$if(toMs !== undefined, (query) => query.where('at', '<', new Date(toMs ?? 0)))
      .orderBy('seq', 'desc')
      .limit(limit),
  );
}

/** The operators' records of sweeps up to an event, in order. */
export async function readSweepsUpTo(
  pool: pg.Pool,
  lastSeq: number,
): Promise<EventOf<'operator_sweep_recorded'>[]> {
  const events = await decoded(
    leavesIn(queriesOn(pool)).where(isOfStreams('sweep:')).where('seq', '<=', lastSeq).orderBy('seq'),
  );
  return events.filter((event) => event.type === 'operator_sweep_recorded');
}

/** The streams whose names begin so; the beginning ends with a colon. */
export async function listStreams(pool: pg.Pool, beginning: string): Promise<string[]> {
  const rows = await queriesOn(pool)
    .selectFrom('tollbook.event')
    .select(({ ref }) => streamName(ref('stream')).as('stream'))
    .distinct()
    .where(isOfStreams(beginning))
    .execute();
  return rows.map(({ stream }) => stream).toSorted();
}
