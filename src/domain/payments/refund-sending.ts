import { createHash } from 'node:crypto';
import type { EventData, RecordedEvent } from '../events/event.ts';
import type { Hex } from '../values/primitives.ts';

/** Names the refunds of one payment of a quote: 0x and 64 hexadecimal digits. */
export function refundId(quoteDigest: string, paymentNonce: string): Hex {
  return `0x${createHash('sha256').update(`${quoteDigest}/${paymentNonce}`).digest('hex')}`;
}

export function refundStream(quoteDigest: string, paymentNonce: string): string {
  return `refund:${refundId(quoteDigest, paymentNonce)}`;
}

/** A refund that a wallet was asked to send, and that is not recorded yet. */
export interface RefundSending {
  readonly started: EventData<'operator_refund_started'>;
  /** RFC 3339. */
  readonly startedAt: string;
  /** What the wallet answered; undefined where it is unknown whether it was sent. */
  readonly transaction: Hex | undefined;
}

/** The refund that is under way by the events of its stream; undefined where none is. */
export function foldSending(events: readonly RecordedEvent[]): RefundSending | undefined {
  let sending: RefundSending | undefined;
  for (const { type, data, at } of events) {
    if (type === 'operator_refund_started')
      sending = { started: data, startedAt: at, transaction: undefined };
    if (type === 'operator_refund_sent' && sending)
      sending = { ...sending, transaction: data.transaction as Hex };
    if (type === 'operator_refund_ended') sending = undefined;
  }
  return sending;
}
