import type { ProgressType } from '../../../payments/rules/payment-progress.ts';
import type { RecordedEvent, TypesWith } from '../../../ledger/rules/event.ts';
import type { Category, Entry, Move } from '../../../base/values/entry.ts';
import { type BookedPayment, namesOf } from './payment.ts';

/** The events that move money of a payment. */
export type MovingType = Exclude<
  ProgressType & TypesWith<'bookkeeping'>,
  'settlement_unknown' | 'settlement_failed'
>;

export const categories: Readonly<Record<MovingType, Category>> = {
  payment_settled: 'payment',
  settlement_confirmed: 'confirmation',
  settlement_disproved: 'reversal',
  settlement_reorged: 'reversal',
  refunded: 'refund',
  redelivery_requested: 'requeue',
  enqueued: 'requeue',
  enqueued_again: 'requeue',
  completed: 'delivery',
  dead_lettered: 'dead_letter',
  operator_requeued: 'requeue',
  refund_request_granted: 'refund_grant',
};

export const creditCategories = {
  credit_granted: 'credit_grant',
  credit_captured: 'credit_use',
  credit_corrected: 'credit_correction',
  credit_expired: 'credit_expiry',
} as const;

export const spendCategories = {
  spend_earned: 'spend_earned',
  spend_paid_out: 'spend_paid_out',
  spend_failed: 'spend_lost',
} as const;

/** The fields of an entry that an event may have besides its moves. */
interface EntryFields {
  readonly transaction?: string | undefined;
  readonly block_number?: string | undefined;
  readonly log_index?: number | undefined;
  readonly block_time?: number | undefined;
  readonly reason?: string | undefined;
}

/** The entry of an event; undefined if it has no moves. */
export function entryOf(
  event: RecordedEvent,
  category: Category,
  moves: readonly Move[],
  of: {
    readonly counterparty?: string;
    readonly quoteDigest?: string;
    readonly quoteSource?: string | undefined;
    readonly payment?: BookedPayment;
    readonly accountName?: string | undefined;
    readonly memo?: string | undefined;
    /** Where it moved on the chain, if not at the event's own place. */
    readonly place?: EntryFields | undefined;
  },
): Entry | undefined {
  if (moves.length === 0) return undefined;
  const fields = of.place ?? (event.data as EntryFields);
  const { transaction, block_number: block, log_index: logIndex } = fields;
  return {
    seq: event.seq,
    stream: event.stream,
    event: event.type,
    category,
    recordedAt: event.at,
    occurredAt: block === undefined || category === 'reversal' ? event.at : blockTime(fields),
    moves,
    payment: of.payment && namesOf(of.payment),
    accountName: of.accountName,
    quoteDigest: of.quoteDigest,
    quoteSource: of.quoteSource,
    counterparty: of.counterparty,
    transaction,
    block,
    logIndex,
    memo: of.memo ?? fields.reason,
  };
}

function blockTime({ block_time: secs }: EntryFields): string | undefined {
  return secs === undefined ? undefined : new Date(secs * 1_000).toISOString();
}
