import type { RecordedEvent } from '../../../src/ledger/rules/event.ts';
import type { Violation } from './violation.ts';

interface Call {
  attempt: number;
  isDelivered: boolean;
  /** Where it was enqueued or tried last. */
  seq: number;
}

/**
 * An attempt is delivered once, attempts come in their order, and only the last one delivered completes. A call whose payment was taken
 * back is not delivered again. Which event may follow which is checked by `checkedFaults`.
 */
export function* attemptViolations(events: readonly RecordedEvent[]): Generator<Violation> {
  const recoveries = events.filter(({ type }) => type === 'ledger_recovered').map(({ seq }) => seq);
  const streams = Map.groupBy(events, ({ stream }) => stream);
  for (const [stream, own] of streams) {
    if (!stream.startsWith('0x')) continue;
    const faults = [...faultsOf(own, recoveries)];
    if (faults.length === 0) continue;
    const types = own.map(({ type }) => type).join(', ');
    yield { kind: 'illegal_transition', words: `${stream}: ${faults.join('; ')}. Its events: ${types}` };
  }
}

function* faultsOf(own: readonly RecordedEvent[], recoveries: readonly number[]): Generator<string> {
  let call: Call = { attempt: 0, isDelivered: false, seq: 0 };
  let isPaid = true;
  /** The answer of its upstream is stored: no runner is given its call. */
  let isAnswered = false;
  /** The attempt that a runner had when the payment was taken back; it may end, and no other may begin. */
  let unpaidAttempt: number | undefined;
  for (const { type, data, seq } of own) {
    if (type === 'settlement_disproved' || type === 'settlement_reorged') isPaid = false;
    if (type === 'payment_settled') [isPaid, unpaidAttempt] = [true, undefined];
    if (type === 'upstream_answered') isAnswered = true;
    if (type === 'enqueued' || type === 'enqueued_again' || type === 'operator_requeued')
      call = { ...call, isDelivered: false, seq };
    if (type !== 'delivered' && type !== 'delivery_failed' && type !== 'completed') continue;
    const { attempt } = data;
    // a backup between the lease of a call and the event that says so has the lease alone
    const isLost =
      attempt === call.attempt + 1 && recoveries.some((recovery) => recovery > call.seq && recovery < seq);
    if (type === 'delivered' && attempt <= call.attempt)
      yield `attempt ${attempt} after attempt ${call.attempt}`;
    const isDelivered = (call.isDelivered && attempt === call.attempt) || isLost || isAnswered;
    if (type === 'completed' && !isDelivered)
      yield `attempt ${attempt} completed, which was not the last one delivered`;
    if (!isPaid && unpaidAttempt !== undefined && unpaidAttempt !== attempt)
      yield `attempt ${attempt} although the payment was taken back`;
    if (!isPaid) unpaidAttempt = attempt;
    call = { attempt, isDelivered: type === 'delivered', seq };
  }
}
