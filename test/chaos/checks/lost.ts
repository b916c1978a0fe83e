import type { Records } from '../records.ts';
import type { RunnerRun } from '../runner-slot.ts';
import type { Loss } from '../turnovers.ts';
import type { Violation } from './violation.ts';
import { type RecordedPayment, recordedPayments } from './payments.ts';

interface Seen {
  readonly records: Records;
  readonly runs: readonly RunnerRun[];
}

/**
 * Leaves out what happened to payments of lost events: their clients may have got any answer, and their calls may have been
 * delivered. What remains to be checked about them is that the ledger has a call or a refund for each transfer. A payment
 * that a third party landed and that was never started is recovered as well, and its client is told so.
 */
export function withoutLost(
  { records, runs }: Seen,
  { events }: Loss,
  payments: ReadonlyMap<string, RecordedPayment>,
  recovered: ReadonlySet<string>,
): Seen {
  const lostStreams = new Set(events.map(({ stream }) => stream));
  const lostKeys = new Set(recordedPayments(events).keys());
  const keptCalls = new Set(
    [...payments.values()].flatMap(({ stream, calls }) => calls.map((id) => `${stream}/${id}`)),
  );
  const presentations = records.presentations.filter(
    ({ signed }) =>
      !lostKeys.has(signed.key) &&
      !recovered.has(signed.key) &&
      !lostStreams.has(payments.get(signed.key)?.stream ?? ''),
  );
  return {
    records: { ...records, presentations },
    runs: runs.filter(
      ({ quoteDigest, callId }) => !lostStreams.has(quoteDigest) || keptCalls.has(`${quoteDigest}/${callId}`),
    ),
  };
}

/** The client of a lost payment that has landed gets no offer to pay again once the ledger is recovered. */
export function* offeredAgain(
  { presentations, landedLate }: Records,
  { resumedAt }: Loss,
  recovered: ReadonlySet<string>,
): Generator<Violation> {
  for (const { scenario, signed, attempts } of presentations) {
    // an offer was right before a third party landed the payment
    const sinceMs = Math.max(resumedAt ?? Infinity, landedLate.get(signed.key) ?? 0);
    const offer = attempts.find(({ status, sentAt }) => status === 402 && sentAt > sinceMs);
    if (offer && recovered.has(signed.key))
      yield {
        kind: 'refused_though_paid',
        words: `${scenario}: ${signed.key} is lost and paid, and was offered again`,
      };
  }
}
