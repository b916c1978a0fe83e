import type pg from 'pg';
import { sha256 } from '../../base/values/sha256.ts';
import type { Hex } from '../../base/values/primitives.ts';
import type { LedgerDatabase } from '../../ledger/store/database.ts';
import { hexText, quoteOf } from '../../ledger/store/expressions.ts';
import { callFunction } from '../../ledger/store/functions.ts';
import { activeGeneration } from '../../ledger/store/payments.ts';

const bytesOf = (hex: string): Buffer => Buffer.from(hex.slice(2), 'hex');

/** Keeps why the payer of a payment asks for its refund, before that is recorded. */
export function putRefundReason(pool: pg.Pool, stream: Hex, payer: string, reason: string): Promise<void> {
  return callFunction(pool, 'put_refund_reason', [stream, payer, reason]);
}

/** Deletes up to `max` reasons of these wallets; returns how many. */
export function eraseRefundReasons(pool: pg.Pool, payers: readonly string[], max: number): Promise<number> {
  return callFunction(pool, 'erase_refund_reasons', [payers, max]);
}

/** The reason whose hash an event has; undefined if it is deleted, or not the one that was recorded. */
export async function findRefundReason(
  db: LedgerDatabase,
  stream: string,
  reasonSha256: string,
): Promise<string | undefined> {
  const row = await db
    .selectFrom('tollbook.refund_reason')
    .select('reason')
    .where('stream', '=', bytesOf(stream))
    .where('sha256', '=', bytesOf(reasonSha256))
    .executeTakeFirst();
  return row && sha256(row.reason) === reasonSha256 ? row.reason : undefined;
}

/** Payments whose payer asked for a refund that an operator has to decide or to pay, the oldest request first. */
export async function listRefundRequests(db: LedgerDatabase, limit: number) {
  return db
    .selectFrom('tollbook.payment')
    .select(['symbol', 'decimals', 'network', 'refund_due', 'quote_source'])
    .select(({ cast, ref }) => [
      quoteOf(ref('tollbook.payment.seq')).as('quote_digest'),
      hexText(ref('asset')).as('asset'),
      hexText(ref('payer')).as('payer'),
      cast<string>('amount', 'text').as('amount'),
      ref('refund_requested_at').$notNull().as('at'),
    ])
    .where('generation', '=', activeGeneration(db))
    .where('refund_requested_at', 'is not', null)
    .orderBy('refund_requested_at')
    .limit(limit)
    .execute();
}
