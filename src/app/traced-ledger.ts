import type { SpanAttributes, Tracing } from '../base/values/tracing.ts';
import { traceStep } from '../base/values/tracing.ts';
import type { AppendOutcome, CreditOutcome } from '../ledger/store/append-batch.ts';
import { type Lane, overlayLane } from '../ledger/store/lane.ts';
import type { PaymentLookup } from '../payments/store/payment-lookup.ts';

const db = { 'db.system.name': 'postgresql' } as const;

/** The lane, with each append that belongs to a request as a span of it: from its queue to its durable answer. */
export function tracedLane(lane: Lane, tracing: Tracing | undefined): Lane {
  if (!tracing) return lane;
  const trace = <T extends AppendOutcome | CreditOutcome>(
    { events }: { readonly events: readonly { readonly type: string }[] },
    work: () => Promise<T>,
  ): Promise<T> => {
    const attributes: SpanAttributes = {
      ...db,
      'db.operation.name': 'append',
      'tollbook.events': events.map(({ type }) => type).join(' '),
    };
    return traceStep(tracing, { name: 'append', kind: 'client', attributes }, work, ({ outcome }) => ({
      attributes: { 'tollbook.outcome': outcome },
    }));
  };
  return overlayLane(lane, {
    append: (command, options) => trace(command, () => lane.append(command, options)),
    appendCredit: (command, options) => trace(command, () => lane.appendCredit(command, options)),
  });
}

/** The look-up of payments, as spans of the requests that ask. */
export function tracedLookup(lookup: PaymentLookup, tracing: Tracing | undefined): PaymentLookup {
  if (!tracing) return lookup;
  const attributes = { ...db, 'db.operation.name': 'look_up_payments' };
  return {
    find: (payment, quoteDigest) =>
      traceStep(tracing, { name: 'look up payment', kind: 'client', attributes }, () =>
        lookup.find(payment, quoteDigest),
      ),
  };
}
