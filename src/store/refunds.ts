import type pg from 'pg';
import { decodeLeaf, type RecordedEvent } from '../domain/events/event.ts';
import type { Caip2 } from '../domain/values/primitives.ts';
import { active, type Page, readPage, time } from './payments.ts';

/** A payment whose money is owed back. Times are RFC 3339, amounts decimal strings. */
export interface RefundDueRow {
  /** The event that started it. */
  readonly seq: number;
  readonly quote_digest: string;
  readonly payment_nonce: string;
  readonly service_id: number;
  readonly job_index: number;
  readonly network: string;
  readonly asset: string;
  readonly symbol: string;
  readonly decimals: number;
  readonly amount: string;
  readonly payer: string;
  readonly pay_to: string;
  readonly transaction: string;
  /** Where the chain proved that it was paid; null on a word alone. */
  readonly block_number: string | null;
  readonly call_id: number | null;
  readonly why: string;
  readonly since: string;
  readonly age_secs: number;
}

/**
 * Payments whose money is owed back, after a place in the ledger, in the order they were started. What has no call is
 * listed a minute after it was settled: until then the call may only not have been read yet.
 */
export async function listRefundsDue(
  pool: pg.Pool,
  afterSeq: number,
  limit: number,
): Promise<Page<RefundDueRow>> {
  return readPage<RefundDueRow>(
    pool,
    `select payment.seq, quote_digest, started.payment_nonce, service_id, job_index, network, asset, symbol, decimals,
       amount::text, payer, pay_to, transaction, block_number::text, call_id, refund_due as why, ${time('refund_due_since', 'since')},
       greatest(0, floor(extract(epoch from clock.now - refund_due_since)))::bigint as age_secs
     from (select tollbook.clock() as now) clock
     cross join tollbook.payment
     cross join lateral (
       select convert_from(leaf, 'UTF8')::json->'data'->'payment'->>'nonce' as payment_nonce
       from tollbook.event where event.lane_id = 1 and event.seq = payment.seq offset 0) started
     where generation = ${active} and refund_due is not null and payment.seq > $1
       and (refund_due = 'dead_lettered' or refund_due_since < clock.now - interval '1 minute')
     order by payment.seq limit ${Math.trunc(limit)}`,
    [afterSeq],
  );
}

/** The quotes of payments of exactly this amount whose money is owed back to this payer. */
export async function findRefundsDueTo(
  pool: pg.Pool,
  owed: { readonly network: Caip2; readonly asset: string; readonly payer: string; readonly amount: bigint },
): Promise<string[]> {
  const { rows } = await pool.query<{ quote_digest: string }>(
    `select quote_digest from tollbook.payment
     where generation = ${active} and refund_due is not null
       and network = $1 and asset = $2 and payer = $3 and amount = $4::numeric order by seq limit 100`,
    [owed.network, owed.asset, owed.payer, String(owed.amount)],
  );
  return rows.map(({ quote_digest }) => quote_digest);
}

/** An address that was paid to, and what the token was called. */
export interface KnownPayee {
  readonly asset: string;
  readonly pay_to: string;
  readonly symbol: string;
  readonly decimals: number;
}

/** Every address that was ever to be paid on a network, with each of its tokens. */
export async function listPayees(pool: pg.Pool, network: Caip2): Promise<KnownPayee[]> {
  // from one pair to the next along the index: there are few of them, and many payments of each
  const { rows } = await pool.query<KnownPayee>(
    `with recursive payee as (
       (select asset, pay_to, symbol, decimals from tollbook.payment
        where generation = ${active} and network = $1 order by asset, pay_to limit 1)
       union all
       select next.* from payee cross join lateral (
         select asset, pay_to, symbol, decimals from tollbook.payment
         where generation = ${active} and network = $1 and (asset, pay_to) > (payee.asset, payee.pay_to)
         order by asset, pay_to limit 1) next)
     select * from payee`,
    [network],
  );
  return rows;
}

/** Recorded sweeps, the newest first. */
export async function listSweeps(
  pool: pg.Pool,
  limit: number,
): Promise<Extract<RecordedEvent, { type: 'operator_sweep_recorded' }>[]> {
  // the character after the colon ends the range of their streams
  const { rows } = await pool.query<{ leaf: Buffer }>(
    `select leaf from tollbook.event where stream >= 'sweep:' and stream < 'sweep;' order by seq desc limit $1`,
    [limit],
  );
  return rows.map(({ leaf }) => decodeLeaf(leaf)).filter((event) => event.type === 'operator_sweep_recorded');
}
