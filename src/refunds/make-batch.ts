import type pg from 'pg';
import { type BatchedRefund, type RefundBatch, transferCall } from '../domain/payments/refund-batch.ts';
import type { Caip2, Hex } from '../domain/values/primitives.ts';
import type { RefundDueRow } from '../store/refunds.ts';
import { listRefundsDue } from './list-refunds-due.ts';

const rowsAtOnce = 1_000;

export interface BatchOrder {
  readonly network: Caip2;
  /** The most refunds in it: a block has room for so many transfers. */
  readonly max: number;
}

export type BatchAnswer =
  | {
      readonly kind: 'made';
      readonly batch: RefundBatch;
      /** Due as well, and left out: only a facilitator or an operator says that they were paid. */
      readonly unproven: readonly string[];
      /** Further refunds are due on the network. */
      readonly isCut: boolean;
    }
  /** The read models contradict the events of these payments: `tollbook verify` comes first. */
  | { readonly kind: 'contradicted'; readonly seqs: readonly number[] };

/**
 * The refunds that are due on a network, the oldest first, as one batch: payees and amounts are those of the events. It records nothing:
 * what was sent is recorded once it is final.
 */
export async function makeBatch(pool: pg.Pool, { network, max }: BatchOrder): Promise<BatchAnswer> {
  const refunds: BatchedRefund[] = [];
  const unproven: string[] = [];
  let isCut = false;
  let asOfSeq = 0;
  for (let after: number | undefined = 0; after !== undefined && !isCut;) {
    const page = await listRefundsDue(pool, after, rowsAtOnce);
    if (page.contradicted.length > 0) return { kind: 'contradicted', seqs: page.contradicted };
    asOfSeq = page.asOfSeq;
    for (const row of page.rows.filter((one) => one.network === network)) {
      if (row.block_number === null) unproven.push(row.quote_digest);
      else if (refunds.length === max) isCut = true;
      else refunds.push(refundIn(row));
    }
    after = page.listed.length < rowsAtOnce ? undefined : page.listed.at(-1);
  }
  return { kind: 'made', batch: { version: 1, network, as_of_seq: asOfSeq, refunds }, unproven, isCut };
}

function refundIn(row: RefundDueRow): BatchedRefund {
  const { symbol, decimals, amount } = row;
  const [asset, to] = [row.asset as Hex, row.payer as Hex];
  const named = { quote_digest: row.quote_digest as Hex, payment_nonce: row.payment_nonce as Hex };
  return { ...named, asset, symbol, decimals, to, amount, call: transferCall(asset, to, BigInt(amount)) };
}
