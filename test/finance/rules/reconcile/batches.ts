import type { LedgerEvent } from '../../../../src/ledger/rules/event.ts';
import {
  authorized,
  completedWith,
  eventsOf,
  type Job,
  jobOf,
  otherPayTo,
  type Planted,
  minedWith,
  settledWith,
  stranger,
} from './builders.ts';

/** Another job of the same payer and amount whose payment is in the same transaction, by the ledger and on the chain. */
function besides({ transfer }: Job, n: number): { readonly job: Job; readonly settled: LedgerEvent } {
  const job = jobOf(n + 150_000);
  const { transaction, blockNumber, blockHash } = transfer;
  const place = { transaction, block_number: String(blockNumber), block_hash: blockHash, log_index: 9 };
  const there = { transaction, blockNumber, blockHash, logIndex: 9 };
  return { job: { ...job, transfer: { ...job.transfer, ...there } }, settled: settledWith(job, place) };
}

/** Two payments in one transaction, and what may be there beside them or instead. */
export const batches = {
  twoInOneTransaction: (n: number): Planted => {
    const job = jobOf(n);
    const { job: other, settled } = besides(job, n);
    return {
      events: [...eventsOf(job, completedWith(job)), ...eventsOf(other, completedWith(other, settled))],
      transfers: [job.transfer, other.transfer],
      expected: [
        ['matched', job.stream],
        ['matched', other.stream],
      ],
    };
  },
  oneOfTwoInOneTransaction: (n: number): Planted => {
    const job = jobOf(n);
    const { job: other, settled } = besides(job, n);
    const { transaction } = job.transfer;
    return {
      events: [...eventsOf(job, completedWith(job)), ...eventsOf(other, completedWith(other, settled))],
      transfers: [job.transfer],
      evidence: [{ transaction, is: minedWith([job.transfer]) }],
      expected: [
        ['matched', job.stream],
        ['duplicate_claim', other.stream],
      ],
    };
  },
  /** The transfer at the place of the payment was moved by an authorization that no event names; its own moved the other one. */
  swappedInOneTransaction: (n: number): Planted => {
    const job = jobOf(n);
    const { job: other } = besides(job, n);
    return {
      events: eventsOf(job, completedWith(job)),
      transfers: [job.transfer, other.transfer],
      authorizations: [
        { ...authorized(job), transfer: other.transfer },
        { ...authorized(other), transfer: job.transfer },
      ],
      expected: [
        ['matched', job.stream],
        ['on_chain_without_event', job.transfer.transaction],
      ],
    };
  },
  strangerInTheTransaction: (n: number): Planted => {
    const job = jobOf(n);
    const unknown = { ...job.transfer, from: stranger, logIndex: 9 };
    return {
      events: eventsOf(job, completedWith(job)),
      transfers: [job.transfer, unknown],
      expected: [
        ['matched', job.stream],
        ['on_chain_without_event', unknown.transaction],
      ],
    };
  },
  nothingInTheTransaction: (n: number): Planted => {
    const job = jobOf(n);
    const nothing = { ...job.transfer, from: stranger, amount: 0n, logIndex: 9 };
    return {
      events: eventsOf(job, completedWith(job)),
      transfers: [job.transfer, nothing],
      expected: [['matched', job.stream]],
    };
  },
  /** It leaves one account and comes to another. */
  paidByAnotherPayee: (n: number): Planted => {
    const job = jobOf(n);
    const { from } = job.transfer;
    const events = eventsOf(job, completedWith(job)).map((planted) => ({
      ...planted,
      event: JSON.parse(JSON.stringify(planted.event).replaceAll(from, otherPayTo)) as LedgerEvent,
    }));
    return {
      events,
      transfers: [{ ...job.transfer, from: otherPayTo }],
      expected: [['matched', job.stream]],
    };
  },
};
