import type { RecordedEvent } from '../../../src/ledger/rules/event.ts';
import type { RunnerRun } from '../runner-slot.ts';
import type { RecordedPayment } from './payments.ts';
import type { Violation } from './violation.ts';

/** Every call ends, and runners received the bytes that were paid for. A call that buys credit has no runner. */
export function* workViolations(
  payments: ReadonlyMap<string, RecordedPayment>,
  events: readonly RecordedEvent[],
  runs: readonly RunnerRun[],
): Generator<Violation> {
  const ends = new Map<number, string>();
  for (const { type, data } of events)
    if (type === 'completed' || type === 'dead_lettered') ends.set(data.call_id, type);
  const topUps = new Set(
    events.flatMap((event) => (event.type === 'credit_topped_up' ? event.data.quote_digest : [])),
  );
  const ran = new Set(runs.map(({ callId }) => callId));
  for (const { key, calls, stream } of payments.values()) {
    const isTopUp = topUps.has(stream);
    for (const id of calls) {
      const end = ends.get(id);
      if (!end) yield { kind: 'call_not_finished', words: `call ${id} of ${key}` };
      if (end === 'completed' && !ran.has(id) && !isTopUp)
        yield { kind: 'wrong_work', words: `call ${id} of ${key} is completed, and no runner had it` };
    }
  }
  yield* runViolations(payments, runs);
}

/** An idempotency key names one payment, also if the events of an earlier one were lost. */
export function* idempotencyViolations(runs: readonly RunnerRun[]): Generator<Violation> {
  const keys = new Map<string, string>();
  for (const { callId, idempotencyKey, quoteDigest } of runs) {
    const first = keys.get(idempotencyKey);
    if (first !== undefined && first !== quoteDigest) {
      const words = `a runner got call ${callId} of ${quoteDigest} with the idempotency key of ${first}`;
      yield { kind: 'wrong_work', words };
    }
    keys.set(idempotencyKey, quoteDigest);
  }
}

function* runViolations(
  payments: ReadonlyMap<string, RecordedPayment>,
  runs: readonly RunnerRun[],
): Generator<Violation> {
  const bodies = new Map<number, string>();
  // a call may be taken back after an attempt
  for (const { bodySha256, everEnqueued } of payments.values())
    for (const id of everEnqueued) bodies.set(id, bodySha256);
  for (const { callId, quoteDigest, bodySha256 } of runs) {
    const words = `a runner got call ${callId} of ${quoteDigest}`;
    const paid = bodies.get(callId);
    if (paid === undefined) yield { kind: 'wrong_work', words: `${words}, which was not paid for` };
    else if (paid !== bodySha256)
      yield { kind: 'wrong_work', words: `${words} with another body than was paid for` };
  }
}
