import type { RecordedEvent } from '../domain/events/event.ts';
import { grant } from '../domain/payments/deliver-or-refund.ts';
import { foldQuote, paidPayment } from '../domain/payments/quote-state.ts';
import type { Hex } from '../domain/values/primitives.ts';
import { listStreams } from '../store/refunds.ts';
import { readStream } from '../store/streams.ts';
import { type Ledger, noteSentRefund } from './send-refund.ts';

/**
 * Refunds that an earlier version had started, in streams of their own, go on in those of their payments, where nothing is delivered beside
 * them. Returns those that cannot: their calls may be delivered, or were. Repeated it changes nothing more.
 */
export async function adoptRefunds(ledger: Ledger): Promise<readonly Hex[]> {
  const left: Hex[] = [];
  for (const stream of await listStreams(ledger.pool, 'refund:')) {
    const { events } = await readStream(ledger.pool, stream);
    const open = openIn(events);
    if (!open) continue;
    if (await adopt(ledger, open)) await end(ledger, stream, events, open);
    else left.push(open.quoteDigest);
  }
  return left;
}

interface OpenRefund {
  readonly refundId: string;
  readonly quoteDigest: Hex;
  readonly paymentNonce: Hex;
  readonly operator: string;
  readonly transaction: Hex | undefined;
}

function openIn(events: readonly RecordedEvent[]): OpenRefund | undefined {
  const started = events.findLast(({ type }) => type === 'operator_refund_started');
  if (started?.type !== 'operator_refund_started') return undefined;
  const later = events.filter(({ version }) => version > started.version);
  if (later.some(({ type }) => type === 'operator_refund_ended')) return undefined;
  const sent = later.findLast(({ type }) => type === 'operator_refund_sent');
  const { refund_id: refundId, quote_digest: digest, payment_nonce: nonce, operator } = started.data;
  const transaction = sent?.type === 'operator_refund_sent' ? (sent.data.transaction as Hex) : undefined;
  return { refundId, quoteDigest: digest as Hex, paymentNonce: nonce as Hex, operator, transaction };
}

/** Whether the payment's own stream says that its refund is started, or was recorded. */
async function adopt({ pool, lane }: Ledger, open: OpenRefund): Promise<boolean> {
  const { quoteDigest: stream, paymentNonce, operator, transaction } = open;
  const quote = foldQuote((await readStream(pool, stream)).events);
  const paid = paidPayment(quote);
  const known = paid?.payment.nonce === paymentNonce ? paid : undefined;
  if (known?.isRefunded) return true;
  if (known && !known.refunding) {
    const granted = grant(known, { kind: 'start_refund', data: { operator } });
    if (granted.kind === 'refused') return false;
    const { outcome } = await lane.append({ stream, expect: quote.version, events: granted.events });
    if (outcome !== 'ok') return adopt({ pool, lane }, open);
  }
  if (known && transaction !== undefined)
    await noteSentRefund({ pool, lane }, { ...open, transaction }, new Map());
  return known !== undefined;
}

async function end(
  { lane }: Ledger,
  stream: string,
  { length: expect }: readonly RecordedEvent[],
  { refundId, operator }: OpenRefund,
): Promise<void> {
  const data = {
    refund_id: refundId,
    as: 'not_sent',
    why: 'it goes on in the stream of its payment',
    operator,
  } as const;
  await lane.append({ stream, expect, events: [{ type: 'operator_refund_ended', data }] });
}
