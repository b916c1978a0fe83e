import { batches } from './batches.ts';
import { hex32Of } from '../../../support/synthetic-ledger.ts';
import { fullOptions } from '../../../../src/payments/rules/quote.ts';
import {
  otherAsset,
  payTo,
  stranger,
  vault,
  otherPayTo,
  type Planted,
  jobOf,
  make,
  settledWith,
  reportedOnly,
  eventsOf,
  completedWith,
  minedWith,
  shownBefore,
  outTransfer,
  sweepOf,
  spendOf,
  refundOf,
  refundWith,
  reportNaming,
  authorized,
} from './builders.ts';
import { recordedTransfers } from './recorded-transfers.ts';

/** One scenario for each way in which the payment, transfer or sweep number `n` can end. */
export const kinds = {
  ...batches,
  matched: (n) => {
    const job = jobOf(n);
    return {
      events: eventsOf(job, completedWith(job)),
      transfers: [job.transfer],
      expected: [['matched', job.stream]],
    };
  },
  matchedByReport: (n) => {
    const job = jobOf(n);
    const events = eventsOf(job, completedWith(job, settledWith(job, reportedOnly)));
    return { events, transfers: [job.transfer], expected: [['matched', job.stream]] };
  },
  reportNamedAnother: (n) => {
    const job = jobOf(n);
    const named = settledWith(job, { ...reportedOnly, transaction: hex32Of(`wrong ${n}`) });
    const authorizations = [{ transfer: job.transfer, nonce: job.settled.data.payment_nonce }];
    const events = eventsOf(job, completedWith(job, named));
    return { events, transfers: [job.transfer], authorizations, expected: [['matched', job.stream]] };
  },
  recordedLate: (n) => {
    const job = jobOf(n);
    const events = eventsOf(job, completedWith(job), 2);
    return { events, transfers: [job.transfer], expected: [['timing', job.stream]] };
  },
  recordedEarly: (n) => {
    const job = jobOf(n);
    const events = eventsOf(job, completedWith(job), 0);
    return { events, transfers: [job.transfer], expected: [['timing', job.stream]] };
  },
  occurredBefore: (n) => {
    const job = jobOf(n);
    const events = eventsOf(job, completedWith(job, settledWith(job, { block_number: '999' })));
    const evidence = [shownBefore(job.transfer)];
    return { events, evidence, expected: [['timing', job.stream]] };
  },
  /** A block of an earlier period, whose reconciliation nobody makes again. */
  inventedBefore: (n) => {
    const job = jobOf(n);
    const events = eventsOf(job, completedWith(job, settledWith(job, { block_number: '999' })));
    return { events, expected: [['missing_on_chain', job.stream]] };
  },
  earlierPeriod: (n) => {
    const job = jobOf(n);
    const events = eventsOf(job, completedWith(job, settledWith(job, { block_number: '998' })), 0);
    return { events, expected: [] };
  },
  beyondFinal: (n) => {
    const job = jobOf(n);
    const events = eventsOf(job, completedWith(job, settledWith(job, { block_number: '100000' })));
    return { events, expected: [['not_final', job.stream]] };
  },
  pending: (n) => {
    const job = jobOf(n);
    const events = eventsOf(job, completedWith(job, settledWith(job, reportedOnly)));
    const evidence = [{ transaction: job.transfer.transaction, is: { kind: 'pending' } as const }];
    return { events, evidence, expected: [['not_final', job.stream]] };
  },
  unknown: (n) => {
    const job = jobOf(n);
    const events = eventsOf(job, [
      job.started,
      make('settlement_unknown', { ...job.named, reason: 'timeout' }),
    ]);
    return { events, expected: [['unknown', job.stream]] };
  },
  unknownThatLanded: (n) => {
    const job = jobOf(n);
    const authorizations = [{ transfer: job.transfer, nonce: job.settled.data.payment_nonce }];
    const events = eventsOf(job, [job.started]);
    return { events, transfers: [job.transfer], authorizations, expected: [['unknown', job.stream]] };
  },
  failed: (n) => {
    const job = jobOf(n);
    const events = eventsOf(job, [
      job.started,
      make('settlement_failed', { ...job.named, reason: 'no_funds' }),
    ]);
    return { events, expected: [] };
  },
  failedThatLanded: (n) => {
    const job = jobOf(n);
    const authorizations = [{ transfer: job.transfer, nonce: job.settled.data.payment_nonce }];
    const events = eventsOf(job, [
      job.started,
      make('settlement_failed', { ...job.named, reason: 'no_funds' }),
    ]);
    const expected = [['on_chain_without_event', job.stream]] as const;
    return { events, transfers: [job.transfer], authorizations, expected };
  },
  deadLettered: (n) => {
    const job = jobOf(n);
    const dead = make('dead_lettered', { call_id: n + 1, attempt: 1, reason: 'attempts_exhausted' });
    const events = eventsOf(job, [job.started, job.settled, job.enqueued, job.delivered, dead]);
    return { events, transfers: [job.transfer], expected: [['refund_due', job.stream]] };
  },
  deadLetteredEarlier: (n) => {
    const job = jobOf(n);
    const dead = make('dead_lettered', { call_id: n + 1, attempt: 1, reason: 'attempts_exhausted' });
    const settled = settledWith(job, { block_number: '998' });
    const events = eventsOf(job, [job.started, settled, job.enqueued, job.delivered, dead], 0);
    return { events, expected: [['refund_due', job.stream]] };
  },
  refunded: (n) => refundWith(n, {}, 'refund'),
  refundedFromElsewhere: (n) => {
    const job = jobOf(n);
    const out = { ...outTransfer(n, job.transfer.from), from: vault, amount: job.transfer.amount };
    const events = eventsOf(job, [job.started, job.settled, refundOf(job, out)]);
    const evidence = [{ transaction: out.transaction, is: minedWith([out]) }];
    const expected = [
      ['matched', job.stream],
      ['refund', job.stream],
    ] as const;
    return { events, transfers: [job.transfer], evidence, expected };
  },
  missing: (n) => {
    const job = jobOf(n);
    const evidence = [{ transaction: job.transfer.transaction, is: { kind: 'absent' } as const }];
    const events = eventsOf(job, completedWith(job, settledWith(job, reportedOnly)));
    return { events, evidence, expected: [['missing_on_chain', job.stream]] };
  },
  reverted: (n) => {
    const job = jobOf(n);
    const { transaction } = job.transfer;
    const evidence = [{ transaction, is: { kind: 'reverted' } as const }];
    return {
      events: eventsOf(job, completedWith(job)),
      evidence,
      expected: [['missing_on_chain', job.stream]],
    };
  },
  amountEdited: (n) => {
    const job = jobOf(n);
    const events = eventsOf(job, completedWith(job, settledWith(job, { amount: '999000' })));
    return { events, transfers: [job.transfer], expected: [['amount_mismatch', job.stream]] };
  },
  paidLess: (n) => {
    const job = jobOf(n);
    const transfers = [{ ...job.transfer, amount: job.transfer.amount - 1n }];
    const events = eventsOf(job, completedWith(job, settledWith(job, reportedOnly)));
    return { events, transfers, expected: [['amount_mismatch', job.stream]] };
  },
  paidInOtherToken: (n) => {
    const job = jobOf(n);
    const transfers = [{ ...job.transfer, asset: otherAsset }];
    return {
      events: eventsOf(job, completedWith(job)),
      transfers,
      expected: [['asset_mismatch', job.stream]],
    };
  },
  paidToOther: (n) => {
    const job = jobOf(n);
    const { transaction } = job.transfer;
    const is = minedWith([{ ...job.transfer, to: stranger }]);
    const events = eventsOf(job, completedWith(job));
    return { events, evidence: [{ transaction, is }], expected: [['payee_mismatch', job.stream]] };
  },
  claimedTwice: (n) => {
    const job = jobOf(n);
    // of the same payer and of the same amount: payers repeat after 50, amounts after 3
    const other = jobOf(n + 150_000);
    const { transaction, block_number, block_hash, log_index } = job.settled.data;
    const copied = settledWith(other, { transaction, block_number, block_hash, log_index });
    const events = [...eventsOf(job, completedWith(job)), ...eventsOf(other, completedWith(other, copied))];
    const expected = [
      ['matched', job.stream],
      ['duplicate_claim', other.stream],
    ] as const;
    return { events, transfers: [job.transfer], expected };
  },
  /** The nonce tells them apart. */
  reportNamedThatOfAnother: (n) =>
    reportNaming(n, (other) => completedWith(other, settledWith(other, reportedOnly)), 'matched'),
  reportNamedThatOfAnUnknownOne: (n) => reportNaming(n, (other) => [other.started], 'unknown'),
  /** Its payer has paid the payee the same amount in that transaction, by an authorization that no event names. */
  reportNamedAForeignAuthorization: (n) => {
    const job = jobOf(n);
    const events = eventsOf(job, completedWith(job, settledWith(job, reportedOnly)));
    const authorizations = [{ transfer: job.transfer, nonce: hex32Of(`foreign ${n}`) }];
    const expected = [
      ['missing_on_chain', job.stream],
      ['on_chain_without_event', job.transfer.transaction],
    ] as const;
    return { events, transfers: [job.transfer], authorizations, expected };
  },
  /** The false claim is the first in the ledger; the nonce says whose transfer it is. */
  claimedFirstByAnother: (n) => {
    const [job, other] = [jobOf(n + 150_000), jobOf(n)];
    const { transaction, block_number, block_hash, log_index } = other.settled.data;
    const copied = settledWith(job, { transaction, block_number, block_hash, log_index });
    const events = [...eventsOf(job, completedWith(job, copied)), ...eventsOf(other, completedWith(other))];
    const expected = [
      ['duplicate_claim', job.stream],
      ['matched', other.stream],
    ] as const;
    return { events, transfers: [other.transfer], authorizations: [authorized(other)], expected };
  },
  otherTerms: (n) => {
    const job = jobOf(n);
    const { quote } = job;
    if (quote.type !== 'quote_issued') throw new Error('no quote');
    const options = fullOptions(quote.data).map((option) => ({ ...option, amount: '1' }));
    const cheaper = { ...quote, data: { ...quote.data, options } };
    const jobEvents = [cheaper, job.verified, ...completedWith(job)];
    const events = jobEvents.map((event) => ({ stream: job.stream, event, phase: 1 as const }));
    return { events, transfers: [job.transfer], expected: [['quote_terms_differ', job.stream]] };
  },
  plainTransfer: (n) => {
    const transfer = { ...jobOf(n).transfer, from: stranger };
    return {
      events: [],
      transfers: [transfer],
      expected: [['on_chain_without_event', transfer.transaction]],
    };
  },
  foreignAuthorization: (n) => {
    const transfer = { ...jobOf(n).transfer, from: stranger };
    const authorizations = [{ transfer, nonce: hex32Of(`foreign ${n}`) }];
    const expected = [['on_chain_without_event', transfer.transaction]] as const;
    return { events: [], transfers: [transfer], authorizations, expected };
  },
  sweep: (n) => {
    const out = outTransfer(n, vault);
    return { events: sweepOf(out), transfers: [out], expected: [['sweep', out.transaction]] };
  },
  spend: (n) => {
    const { transfer } = jobOf(n);
    const expected = [['spend', transfer.transaction]] as const;
    return { events: spendOf(transfer, payTo), transfers: [transfer], expected };
  },
  spendForAnotherSender: (n) => {
    const { transfer } = jobOf(n);
    const expected = [['spend', transfer.transaction]] as const;
    return { events: spendOf(transfer, stranger), transfers: [transfer], expected };
  },
  spendToElsewhere: (n) => {
    const transfer = { ...jobOf(n).transfer, to: vault };
    const { transaction } = transfer;
    const evidence = [{ transaction, is: minedWith([transfer]) }];
    return { events: spendOf(transfer, payTo), evidence, expected: [] };
  },
  spendNeverPaidOut: (n) => {
    const { transfer } = jobOf(n);
    const expected = [['missing_on_chain', transfer.transaction]] as const;
    return { events: spendOf(transfer, payTo), expected };
  },
  /** The event has no transaction: the process that sent the payout was killed. */
  spendSeenLater: (n) => {
    const transfer = { ...jobOf(n).transfer, from: stranger, amount: 5_000_000n + BigInt(n) };
    const expected = [['spend', transfer.transaction]] as const;
    return { events: spendOf(transfer, payTo, false), transfers: [transfer], expected };
  },
  sweptToOtherPayee: (n) => {
    const out = outTransfer(n, otherPayTo);
    return { events: sweepOf(out), transfers: [out], expected: [['sweep', out.transaction]] };
  },
  sweptToOtherPayeeEarlier: (n) => {
    const out = outTransfer(n, otherPayTo);
    const expected = [['timing', out.transaction]] as const;
    return { events: sweepOf(out, { block_number: '999' }), evidence: [shownBefore(out)], expected };
  },
  sweepInventedBefore: (n) => {
    const out = outTransfer(n, otherPayTo);
    const expected = [['missing_on_chain', out.transaction]] as const;
    return { events: sweepOf(out, { block_number: '999' }), expected };
  },
  /** The transaction moved something else. */
  refundInventedBefore: (n) => {
    const job = jobOf(n);
    const out = { ...outTransfer(n, job.transfer.from), amount: job.transfer.amount, blockNumber: 999n };
    const dead = make('dead_lettered', { call_id: n + 1, attempt: 1, reason: 'attempts_exhausted' });
    const events = eventsOf(job, [job.started, job.settled, job.enqueued, dead, refundOf(job, out)]);
    const evidence = [shownBefore({ ...out, to: stranger })];
    const expected = [
      ['matched', job.stream],
      ['missing_on_chain', job.stream],
    ] as const;
    return { events, transfers: [job.transfer], evidence, expected };
  },
  refundedToElsewhere: (n) => refundWith(n, { to: stranger }, 'payee_mismatch'),
  refundedLess: (n) => refundWith(n, { amount: 1n }, 'amount_mismatch'),
  sweptToElsewhere: (n) => {
    const out = outTransfer(n, stranger);
    const events = sweepOf(out, { swept_to: vault });
    return { events, transfers: [out], expected: [['payee_mismatch', out.transaction]] };
  },
  sweptInOtherToken: (n) => {
    const out = { ...outTransfer(n, vault), asset: otherAsset };
    return { events: sweepOf(out), transfers: [out], expected: [['asset_mismatch', out.transaction]] };
  },
  sweptOtherwise: (n) => {
    const out = outTransfer(n, vault);
    const events = sweepOf(out, { amount: '1' });
    return { events, transfers: [out], expected: [['amount_mismatch', out.transaction]] };
  },
  sweptNothing: (n) => {
    const out = outTransfer(n, vault);
    const evidence = [{ transaction: out.transaction, is: { kind: 'absent' } as const }];
    return { events: sweepOf(out), evidence, expected: [['missing_on_chain', out.transaction]] };
  },
  foreignUse: (n) => {
    const out = outTransfer(n, stranger);
    return { events: [], transfers: [out], expected: [['foreign_use', out.transaction]] };
  },
  ...recordedTransfers,
  /** Any account can make a token log a transfer of 0 between any two addresses. */
  nothingMoved: (n) => {
    const out = { ...outTransfer(n, stranger), amount: 0n };
    const into = { ...jobOf(n).transfer, from: stranger, amount: 0n };
    return { events: [], transfers: [out, into], expected: [] };
  },
} as const satisfies Record<string, (n: number) => Planted>;
export type Kind = keyof typeof kinds;
export const allKinds = Object.keys(kinds) as Kind[];
