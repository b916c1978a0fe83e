import type { EventType, RecordedEvent } from '../../../src/ledger/rules/event.ts';
import { paymentKey } from '../records.ts';
import { keyOf } from './payments.ts';
import type { Violation } from './violation.ts';

type PaymentState = 'absent' | 'authorized' | 'settling' | 'unknown' | 'failed' | 'settled';
type RefundState = 'none' | 'started' | 'refunded';
type CallState = 'absent' | 'enqueued' | 'delivered' | 'failed' | 'completed' | 'dead';

/** From which states of its payment an event may come, and where it leads. */
const paymentSteps: Partial<Record<EventType, { from: readonly PaymentState[]; to?: PaymentState }>> = {
  settlement_started: { from: ['absent'], to: 'settling' },
  upstream_repeated: { from: ['authorized'] },
  upstream_answered: { from: ['authorized'], to: 'settling' },
  payment_recovered: { from: ['absent'], to: 'settled' },
  payer_mismatch: { from: ['settling', 'unknown'] },
  settlement_unknown: { from: ['settling', 'unknown'], to: 'unknown' },
  settlement_overdue: { from: ['settling', 'unknown'] },
  settlement_failed: { from: ['authorized', 'settling', 'unknown'], to: 'failed' },
  // a failed one may still land
  payment_settled: { from: ['authorized', 'settling', 'unknown', 'failed'], to: 'settled' },
  settlement_confirmed: { from: ['settled'] },
  settlement_disproved: { from: ['settled'], to: 'unknown' },
  settlement_reorged: { from: ['settled'], to: 'unknown' },
  enqueued: { from: ['settled'] },
  enqueued_again: { from: ['settled'] },
  redelivery_requested: { from: ['settled'] },
  refund_started: { from: ['settled'] },
  refunded: { from: ['settled'] },
};

/** The same for its refund, of which nothing may be delivered. */
const refundSteps: Partial<Record<EventType, { from: readonly RefundState[]; to?: RefundState }>> = {
  redelivery_requested: { from: ['none'] },
  operator_requeued: { from: ['none'] },
  enqueued: { from: ['none'] },
  delivered: { from: ['none'] },
  completed: { from: ['none'] },
  refund_started: { from: ['none'], to: 'started' },
  refund_sent: { from: ['started'] },
  refund_not_sent: { from: ['started'] },
  refund_abandoned: { from: ['started'], to: 'none' },
  refunded: { from: ['none', 'started'], to: 'refunded' },
};

/** The same for calls. Completed is the end; a dead letter waits for the operator. */
const callSteps: Partial<Record<EventType, { from: readonly CallState[]; to: CallState }>> = {
  enqueued: { from: ['absent'], to: 'enqueued' },
  enqueued_again: { from: ['absent'], to: 'enqueued' },
  delivered: { from: ['enqueued', 'delivered', 'failed'], to: 'delivered' },
  delivery_failed: { from: ['enqueued', 'delivered', 'failed'], to: 'failed' },
  completed: { from: ['delivered'], to: 'completed' },
  dead_lettered: { from: ['enqueued', 'delivered', 'failed'], to: 'dead' },
  operator_requeued: { from: ['dead'], to: 'enqueued' },
  operator_discarded: { from: ['dead'], to: 'dead' },
};

/** States of a call in which its payment may be refunded. */
const mayRefund: ReadonlySet<CallState> = new Set(['absent', 'dead']);

/** What a request that came to nothing leaves in its own stream. */
const requestTypes: ReadonlySet<EventType> = new Set([
  'auth_passed',
  'payment_rejected',
  'request_refused',
  'auth_denied',
  'refusals_counted',
  'sessions_counted',
  'payment_replay_denied',
  'nonce_replay_denied',
  'enqueue_failed',
  'dry_run_allowed',
  'dry_run_denied',
  'dry_run_error',
]);

interface Payment {
  state: PaymentState;
  /** The attempt that a runner had when the payment was taken back; it may end, and no other may begin. */
  unpaidAttempt?: number | undefined;
  /** The answer of its upstream is stored: no runner is given its call. */
  isAnswered?: boolean;
  call: { id: number | undefined; state: CallState; attempt: number; seq?: number };
}

/** Holds every event against the state that the events before it leave. */
export function* transitionViolations(events: readonly RecordedEvent[]): Generator<Violation> {
  const streams = new Map<string, RecordedEvent[]>();
  const recoveries = events.filter(({ type }) => type === 'ledger_recovered').map(({ seq }) => seq);
  for (const event of events) {
    const stream = streams.get(event.stream) ?? [];
    streams.set(event.stream, stream);
    stream.push(event);
  }
  for (const [stream, streamEvents] of streams) {
    const faults = [
      ...(stream.startsWith('0x')
        ? quoteFaults(streamEvents, recoveries)
        : requestFaults(stream, streamEvents)),
    ];
    if (faults.length === 0) continue;
    const types = streamEvents.map(({ type }) => type).join(', ');
    yield { kind: 'illegal_transition', words: `${stream}: ${faults.join('; ')}. Its events: ${types}` };
  }
}

function* requestFaults(stream: string, streamEvents: readonly RecordedEvent[]): Generator<string> {
  if (!stream.startsWith('request:')) return;
  for (const { type } of streamEvents) if (!requestTypes.has(type)) yield `${type} in a request's own stream`;
}

function* quoteFaults(
  streamEvents: readonly RecordedEvent[],
  recoveries: readonly number[],
): Generator<string> {
  const payments = new Map<string, Payment>();
  let refund: RefundState = 'none';
  for (const event of streamEvents) {
    const step = refundSteps[event.type];
    if (step && !step.from.includes(refund)) yield `${event.type} while the refund is ${refund}`;
    refund = step?.to ?? refund;
    const call = [...payments.values()]
      .map((payment) => payment.call.state)
      .find((state) => !mayRefund.has(state));
    if (call && (event.type === 'refund_started' || event.type === 'refunded'))
      yield `${event.type} while the call is ${call}`;
    const isFirst = event.type === 'quote_issued' || event.type === 'payment_recovered';
    if (isFirst !== (event.version === 1)) yield `${event.type} at version ${event.version}`;
    yield* moneyFaults(payments, event);
    assumeLostDelivery([...payments.values()], event, recoveries);
    yield* callFaults([...payments.values()], event);
  }
}

function* moneyFaults(payments: Map<string, Payment>, event: RecordedEvent): Generator<string> {
  const step = paymentSteps[event.type];
  if (!step) return;
  const key = paymentOf(event, payments);
  const payment = payments.get(key) ?? {
    state: 'absent',
    call: { id: undefined, state: 'absent', attempt: 0 },
  };
  payments.set(key, payment);
  if (!step.from.includes(payment.state)) yield `${event.type} while the payment is ${payment.state}`;
  if (event.type === 'settlement_started' && payments.size > 1) yield 'a second payment of one quote';
  payment.state = step.to ?? payment.state;
  if (event.type === 'settlement_started' && event.data.upstream) payment.state = 'authorized';
  if (event.type === 'upstream_answered') payment.isAnswered = true;
  if (payment.state === 'settled') payment.unpaidAttempt = undefined;
  const isTakenBack = event.type === 'settlement_disproved' || event.type === 'settlement_reorged';
  if (!isTakenBack || event.data.call === 'kept') return;
  if (!['enqueued', 'delivered', 'failed'].includes(payment.call.state))
    yield `a call was withdrawn that was ${payment.call.state}`;
  payment.call = { id: undefined, state: 'absent', attempt: payment.call.attempt };
}

function paymentOf(event: RecordedEvent, payments: ReadonlyMap<string, Payment>): string {
  if (event.type === 'settlement_started') {
    const { asset, payer, nonce } = event.data.payment;
    return paymentKey(asset, payer, nonce);
  }
  if (event.type === 'enqueued' || event.type === 'enqueued_again') {
    const { payment_nonce: nonce } = event.data;
    return [...payments.keys()].find((key) => key.endsWith(nonce)) ?? '';
  }
  return 'payment_nonce' in event.data && 'payer' in event.data && 'asset' in event.data && event.data.asset
    ? keyOf({ ...event.data, asset: event.data.asset })
    : '';
}

/**
 * A backup between the lease of a call and the event that says so has the lease alone. The runner, which got the call from the lost
 * database, may complete it after the recovery.
 */
function assumeLostDelivery(
  payments: readonly Payment[],
  event: RecordedEvent,
  recoveries: readonly number[],
): void {
  if (event.type !== 'completed') return;
  const { call_id: id, attempt } = event.data;
  const call = payments.find((payment) => payment.call.id === id)?.call;
  if (!call || attempt !== call.attempt + 1 || !['enqueued', 'failed'].includes(call.state)) return;
  if (!recoveries.some((seq) => seq > (call.seq ?? 0) && seq < event.seq)) return;
  call.state = 'delivered';
  call.attempt = attempt;
}

function* callFaults(payments: readonly Payment[], event: RecordedEvent): Generator<string> {
  const step = callSteps[event.type];
  if (!step || !('call_id' in event.data)) return;
  const { call_id: id } = event.data;
  const owner =
    event.type === 'enqueued' || event.type === 'enqueued_again'
      ? payments.find(({ state, call }) => state === 'settled' && call.state === 'absent')
      : payments.find(({ call }) => call.id === id);
  if (!owner) return yield `${event.type} of call ${id}, which was not paid for or exists already`;
  const { call } = owner;
  // the answer that was stored before the payment was settled
  const isReleased = owner.isAnswered === true && event.type === 'completed' && call.state === 'enqueued';
  if (!step.from.includes(call.state) && !isReleased) yield `${event.type} while call ${id} is ${call.state}`;
  if (!isReleased) yield* attemptFaults(call, event);
  yield* unpaidFaults(owner, event);
  const attempt = 'attempt' in event.data ? event.data.attempt : call.attempt;
  owner.call = { id, state: step.to, attempt, seq: event.seq };
}

/** A call whose payment was taken back is not delivered again. */
function* unpaidFaults(owner: Payment, event: RecordedEvent): Generator<string> {
  if (owner.state === 'settled' || event.type === 'dead_lettered' || !('attempt' in event.data)) return;
  const { attempt } = event.data;
  if (owner.unpaidAttempt !== undefined && owner.unpaidAttempt !== attempt)
    yield `attempt ${attempt} although the payment is ${owner.state}`;
  owner.unpaidAttempt = attempt;
}

/** An attempt is delivered once, attempts come in their order, and only the last one delivered can complete. */
function* attemptFaults(call: Payment['call'], event: RecordedEvent): Generator<string> {
  if (!('attempt' in event.data)) return;
  const { attempt } = event.data;
  if (event.type === 'delivered' && attempt <= call.attempt)
    yield `attempt ${attempt} after attempt ${call.attempt}`;
  if (event.type === 'completed' && attempt !== call.attempt)
    yield `attempt ${attempt} completed after attempt ${call.attempt} was delivered`;
}
