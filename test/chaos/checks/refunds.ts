import type { EventType, RecordedEvent } from '../../../src/ledger/rules/event.ts';
import type { SentRefund } from '../refund-operator.ts';
import { keyOf, type RecordedPayment } from './payments.ts';
import type { Landed } from './transfers.ts';
import type { Violation } from './violation.ts';

interface Facts {
  readonly events: readonly RecordedEvent[];
  readonly payments: ReadonlyMap<string, RecordedPayment>;
  readonly transfers: readonly Landed[];
}

/** A payment is delivered or refunded, once, only if it was made, and what was sent is on record. */
export function* refundViolations(
  { events, payments, transfers }: Facts,
  sent: readonly SentRefund[],
): Generator<Violation> {
  const landed = new Set(transfers.map(({ key }) => key));
  // of two equal refunds to one payer either transaction may be named for either payment
  const recorded = new Map(
    events.flatMap(({ type, data }) =>
      type === 'refunded' ? [[data.transaction, keyOf(data)] as const] : [],
    ),
  );
  const refunded = new Set<string>();
  for (const { key: meant, transaction } of sent) {
    const key = recorded.get(transaction) ?? meant;
    const words = `${key}, refunded in ${transaction}`;
    if (refunded.has(key)) yield { kind: 'refunded_twice', words };
    refunded.add(key);
    if (!landed.has(key)) yield { kind: 'refunded_though_unpaid', words };
    if (!recorded.has(transaction)) yield { kind: 'refund_not_recorded', words };
    const delivered = (payments.get(key)?.calls ?? []).filter((id) => !isDead(events, id));
    if (delivered.length > 0)
      yield { kind: 'delivered_and_refunded', words: `${words}: call ${delivered.join(', ')}` };
  }
  yield* earlyRefunds(events);
}

const ends: ReadonlySet<EventType> = new Set(['dead_lettered', 'operator_discarded']);

function isDead(events: readonly RecordedEvent[], callId: number): boolean {
  const last = events.findLast(({ data }) => 'call_id' in data && data.call_id === callId);
  return last !== undefined && ends.has(last.type);
}

/** A refund is started of a payment in a final block, which no reorg can take back. */
function* earlyRefunds(events: readonly RecordedEvent[]): Generator<Violation> {
  const paidIn = new Map<string, bigint>();
  for (const { type, data } of events) {
    if (type === 'payment_settled' || type === 'settlement_confirmed' || type === 'payment_recovered')
      if (data.block_number !== undefined) paidIn.set(keyOf(data), BigInt(data.block_number));
    if (type !== 'refund_started') continue;
    const block = paidIn.get(keyOf(data));
    if (block === undefined || block > BigInt(data.since_block ?? 0))
      yield {
        kind: 'refunded_too_early',
        words: `${keyOf(data)}: paid in block ${block}, and the last final one was ${data.since_block}`,
      };
  }
}
