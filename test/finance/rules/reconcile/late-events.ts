import type { LedgerEvent } from '../../../../src/ledger/rules/event.ts';
import {
  type Job,
  jobOf,
  outTransfer,
  completedWith,
  refundOf,
  make,
  settledWith,
  reportedOnly,
  eventsOf,
} from './builders.ts';

/** Payments from long before or after the period, and the events that follow weeks later. */
export const lateEvents = {
  refundedLate: (n: number) => {
    const job = jobOf(n);
    const out = { ...outTransfer(n, job.transfer.from), amount: job.transfer.amount };
    return lateEventsOf(job, completedWith(job), [refundOf(job, out)], 'settled');
  },
  reorgedLate: (n: number) => {
    const job = jobOf(n);
    const { transaction, block_number, block_hash } = job.settled.data;
    const data = { ...job.named, transaction, block_number, block_hash, call: 'kept' };
    return lateEventsOf(job, completedWith(job), [make('settlement_reorged', data)], 'settlement_unknown');
  },
  confirmedLate: (n: number) => {
    const job = jobOf(n);
    const { transaction, block_number, block_hash, log_index } = job.settled.data;
    const data = { ...job.named, transaction, block_number, block_hash, log_index };
    return lateEventsOf(
      job,
      completedWith(job, settledWith(job, reportedOnly)),
      [make('settlement_confirmed', data)],
      'settled',
    );
  },
  settledLate: (n: number) => {
    const job = jobOf(n);
    const failed = make('settlement_failed', { ...job.named, reason: 'timeout' });
    return lateEventsOf(job, [job.started, failed], [job.settled], 'settled');
  },
};

function lateEventsOf(
  job: Job,
  first: readonly LedgerEvent[],
  last: readonly LedgerEvent[],
  finalStatus: string,
) {
  const later = last.map((event) => ({ stream: job.stream, event, phase: 2 as const }));
  return { events: eventsOf(job, first), later, finalStatus };
}
