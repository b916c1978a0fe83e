import {
  authorized,
  eventsOf,
  jobOf,
  make,
  outTransfer,
  payTo,
  type Planted,
  minedWith,
  recordOf,
  returnedBy,
  reversalOf,
  shownBefore,
  stranger,
  vault,
} from './builders.ts';

/** One scenario for each way in which an operator may have recorded the transfer number `n`. */
export const recordedTransfers = {
  suspense: (n) => {
    const came = { ...jobOf(n).transfer, from: stranger };
    const expected = [['suspense', came.transaction]] as const;
    return { events: [recordOf(came, 'suspense')], transfers: [came], expected };
  },
  suspenseOfEarlier: (n) => {
    const came = { ...jobOf(n).transfer, from: stranger, blockNumber: 998n };
    const expected = [['suspense', came.transaction]] as const;
    return { events: [recordOf(came, 'suspense')], evidence: [shownBefore(came)], expected };
  },
  suspenseInventedBefore: (n) => {
    const came = { ...jobOf(n).transfer, from: stranger, blockNumber: 998n };
    return { events: [recordOf(came, 'suspense')], expected: [['missing_on_chain', came.transaction]] };
  },
  kept: (n) => {
    const came = { ...jobOf(n).transfer, from: stranger };
    const events = [recordOf(came, 'suspense'), recordOf(came, 'income')];
    return { events, transfers: [came], expected: [['income', came.transaction]] };
  },
  keptEarlier: (n) => {
    const came = { ...jobOf(n).transfer, from: stranger, blockNumber: 998n };
    const expected = [['timing', came.transaction]] as const;
    return { events: [recordOf(came, 'income')], evidence: [shownBefore(came)], expected };
  },
  returned: (n) => {
    const came = { ...jobOf(n).transfer, from: stranger };
    const back = { ...outTransfer(n, stranger), amount: came.amount };
    const events = [recordOf(came, 'suspense'), recordOf(came, 'returned', returnedBy(back))];
    const expected = [
      ['returned', came.transaction],
      ['returned', back.transaction],
    ] as const;
    return { events, transfers: [came, back], expected };
  },
  returnedFromElsewhere: (n) => {
    const came = { ...jobOf(n).transfer, from: stranger };
    const back = { ...outTransfer(n, stranger), from: vault, amount: came.amount };
    const events = [recordOf(came, 'suspense'), recordOf(came, 'returned', returnedBy(back))];
    const evidence = [{ transaction: back.transaction, is: minedWith([back]) }];
    const expected = [
      ['returned', came.transaction],
      ['returned', back.transaction],
    ] as const;
    return { events, transfers: [came], evidence, expected };
  },
  ownToItself: (n) => {
    const around = outTransfer(n, payTo);
    return {
      events: [recordOf(around, 'own')],
      transfers: [around],
      expected: [['own', around.transaction]],
    };
  },
  ownFromElsewhere: (n) => {
    const came = { ...jobOf(n).transfer, from: vault };
    return { events: [recordOf(came, 'own')], transfers: [came], expected: [['own', came.transaction]] };
  },
  recordedAndReversed: (n) => {
    const came = { ...jobOf(n).transfer, from: stranger };
    const events = [recordOf(came, 'suspense'), reversalOf(came)];
    return { events, transfers: [came], expected: [['on_chain_without_event', came.transaction]] };
  },
  recordedOfNothing: (n) => {
    const came = { ...jobOf(n).transfer, from: stranger };
    const evidence = [{ transaction: came.transaction, is: { kind: 'absent' } as const }];
    const expected = [['missing_on_chain', came.transaction]] as const;
    return { events: [recordOf(came, 'suspense')], evidence, expected };
  },
  recordedOfMore: (n) => {
    const came = { ...jobOf(n).transfer, from: stranger };
    const events = [recordOf({ ...came, amount: came.amount + 1n }, 'income')];
    return { events, transfers: [came], expected: [['amount_mismatch', came.transaction]] };
  },
  /** A payment of the ledger is not an unexplained transfer, even if an operator recorded it as one. */
  recordedThoughPaid: (n) => {
    const job = jobOf(n);
    const events = [...eventsOf(job, [job.started]), recordOf(job.transfer, 'income')];
    const expected = [
      ['unknown', job.stream],
      ['duplicate_claim', job.transfer.transaction],
    ] as const;
    return { events, transfers: [job.transfer], authorizations: [authorized(job)], expected };
  },
  failedThatLandedAndIsKept: (n) => {
    const job = jobOf(n);
    const failed = make('settlement_failed', { ...job.named, reason: 'no_funds' });
    const events = [...eventsOf(job, [job.started, failed]), recordOf(job.transfer, 'income')];
    const expected = [['income', job.transfer.transaction]] as const;
    return { events, transfers: [job.transfer], authorizations: [authorized(job)], expected };
  },
} as const satisfies Record<string, (n: number) => Planted>;
