import type pg from 'pg';
import type { JobId } from '../../base/values/job.ts';
import type { SettlementOption } from '../rules/quote.ts';
import { callFunction } from '../../ledger/store/functions.ts';

/** What one configuration offers to version 1 clients. */
export interface PriceList {
  /** The same for equal lists, in every gateway. */
  readonly id: Buffer;
  /** How long its prices can be paid after it was extended last. */
  readonly validSecs: number;
  readonly prices: readonly Readonly<Record<string, string | number | null>>[];
}

/**
 * Begins to offer a price list. Withdraws the prices of all other lists for a job and a token that this list does not offer.
 */
export function offerPrices(pool: pg.Pool, { id, validSecs, prices }: PriceList): Promise<void> {
  return callFunction(pool, 'offer_prices', [id, validSecs, prices]);
}

/** Says that a price list is still offered. */
export async function extendPrices(pool: pg.Pool, list: PriceList): Promise<void> {
  const isKnown = await callFunction(pool, 'extend_prices', [list.id, list.validSecs]);
  // the database could not be reached for so long that its prices ended
  if (!isKnown) await offerPrices(pool, list);
}

/**
 * The last price of a job in these terms that any gateway offers or offered to version 1 clients: not withdrawn, not before
 * `revokedBefore`. Times are Unix seconds. Raw SQL, prepared, since any client can cause it; the terms are the beginning of the primary key.
 */
export async function findPriceWindow(
  pool: pg.Pool,
  { serviceId, jobIndex }: JobId,
  { network, asset, transferMethod, payTo, amount }: SettlementOption,
  revokedBefore: number,
) {
  const { rows } = await pool.query<{ price: string; credit: string | null; offered: number; end: number }>({
    name: 'find_price_window',
    text: `select price_wei as price, credit_micros as credit, extract(epoch from offered_at)::float8 as offered,
        extract(epoch from valid_until)::float8 as "end"
      from tollbook.price_window join tollbook.price_list using (list_id)
      where service_id = $1 and job_index = $2 and network = $3 and asset = $4 and transfer_method = $5 and pay_to = $6
        and amount = $7 and valid_until > tollbook.clock() and offered_at >= to_timestamp($8)
      order by offered_at desc limit 1`,
    values: [serviceId, jobIndex, network, asset, transferMethod, payTo, String(amount), revokedBefore],
  });
  const [row] = rows;
  if (!row) return undefined;
  return {
    priceWei: BigInt(row.price),
    /** What it buys, if the job sells credit. */
    creditMicros: row.credit === null ? undefined : BigInt(row.credit),
    offeredAt: Math.floor(row.offered),
    endAt: Math.floor(row.end),
  };
}
