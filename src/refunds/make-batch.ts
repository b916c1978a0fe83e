import type pg from 'pg';
import { type BatchedRefund, type RefundBatch, transferCall } from '../domain/payments/refund-batch.ts';
import type { Caip2, Hex } from '../domain/values/primitives.ts';
import type { RefundDueRow } from '../store/refunds.ts';
import { refundStream } from '../domain/payments/refund-sending.ts';
import { findUnlistedRefunds } from './find-unlisted.ts';
import { listRefundsDue } from './list-refunds-due.ts';
import { readAllSending } from './send-refund.ts';

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
      /** Due as well, and left out: somebody has begun to send them from the console. */
      readonly underWay: readonly { readonly quoteDigest: string; readonly operator: string }[];
      /** Further refunds are due on the network. */
      readonly isCut: boolean;
    }
  /** The read models contradict the events of these payments: `tollbook verify` comes first. */
  | { readonly kind: 'contradicted'; readonly seqs: readonly number[] }
  /** These events of payments are not those that the log has sealed. */
  | { readonly kind: 'changed'; readonly seqs: readonly number[] };

/**
 * The refunds that are due on a network, the oldest first, as one batch: payees and amounts are those of the events. It records nothing:
 * what was sent is recorded once it is final.
 */
export async function makeBatch(pool: pg.Pool, { network, max }: BatchOrder): Promise<BatchAnswer> {
  const refunds: BatchedRefund[] = [];
  const unproven: string[] = [];
  const underWay: { quoteDigest: string; operator: string }[] = [];
  let isCut = false;
  let asOfSeq = 0;
  const unlisted = await findUnlistedRefunds(pool);
  if (unlisted.length > 0) return { kind: 'contradicted', seqs: unlisted };
  for (let after: number | undefined = 0; after !== undefined && !isCut;) {
    const page = await listRefundsDue(pool, after, rowsAtOnce);
    if (page.changed.length > 0) return { kind: 'changed', seqs: page.changed };
    if (page.contradicted.length > 0) return { kind: 'contradicted', seqs: page.contradicted };
    asOfSeq = page.asOfSeq;
    const rows = page.rows.filter((one) => one.network === network);
    const sending = await readAllSending(pool, rows);
    for (const row of rows) {
      const sent = sending.get(refundStream(row.quote_digest, row.payment_nonce));
      if (sent) underWay.push({ quoteDigest: row.quote_digest, operator: sent.started.operator });
      else if (row.block_number === null) unproven.push(row.quote_digest);
      else if (refunds.length === max) isCut = true;
      else refunds.push(refundIn(row));
    }
    after = page.listed.length < rowsAtOnce ? undefined : page.listed.at(-1);
  }
  return {
    kind: 'made',
    batch: { version: 1, network, as_of_seq: asOfSeq, refunds },
    unproven,
    underWay,
    isCut,
  };
}

function refundIn(row: RefundDueRow): BatchedRefund {
  const { symbol, decimals, amount } = row;
  const [asset, to] = [row.asset as Hex, row.payer as Hex];
  const named = { quote_digest: row.quote_digest as Hex, payment_nonce: row.payment_nonce as Hex };
  return { ...named, asset, symbol, decimals, to, amount, call: transferCall(asset, to, BigInt(amount)) };
}
