import { amountOf } from '../../../../src/finance/rules/reconcile/fact.ts';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ReopenedQuotes } from '../../../../src/audit/rules/bookkeeping/reopened-quotes.ts';
import { accountKey } from '../../../../src/finance/rules/reconcile/reconcile.ts';
import { type ChainTransfer } from '../../../../src/payments/rules/chain-transfer.ts';
import { LedgerFacts } from '../../../../src/finance/rules/reconcile/ledger-facts.ts';
import { paidJob } from '../../../support/synthetic-ledger.ts';
import { network, otherPayTo, payTo, type Planted, stranger } from './builders.ts';
import { allKinds, type Kind, kinds } from './support.ts';
import { lateEvents } from './late-events.ts';
import { account, foundIn, key, reconcilePlanted } from './scenario.ts';
import { propertyRuns } from '../../../support/property-runs.ts';

const expectedOf = (planted: readonly Planted[]): string[] =>
  planted.flatMap(({ expected }) => expected.map((pair) => pair.join(' '))).toSorted();

/** The transfers to the payee in its token, less those from the payee. */
const movedBy = (transfers: readonly ChainTransfer[]): bigint =>
  transfers
    .filter(({ asset }) => asset === account.asset)
    .reduce(
      (sum, { from, to, amount }) => sum + (to === payTo ? amount : 0n) - (from === payTo ? amount : 0n),
      0n,
    );

describe('a reconciliation of one scenario', () => {
  test.each(allKinds)('reports %s in its class and reports nothing else', (kind) => {
    const planted = [kinds[kind](7)];
    expect(foundIn(reconcilePlanted(planted).tally)).toEqual(expectedOf(planted));
  });
});

test('in any mixture of scenarios every item is reported in its class, once, and nothing else is reported', () => {
  const kindAt = fc.constantFrom<Kind>('matched', ...allKinds);
  const mixture = fc.array(kindAt, { minLength: 1, maxLength: 120 });
  fc.assert(
    fc.property(mixture, fc.array(fc.nat(60), { maxLength: 40 }), (names, turns) => {
      const planted = names.map((name, n) => kinds[name](n));
      const { tally, transfers, contradictions } = reconcilePlanted(planted, { turns });
      expect(foundIn(tally)).toEqual(expectedOf(planted));
      expect(contradictions).toEqual([]);
      // every transfer is in exactly one class, so the classes add up to the amount moved on the chain
      expect(tally.net(account)).toBe(movedBy(transfers));
    }),
    propertyRuns(40),
  );
});

test('a payment that is kept as a hash until its transfer was seen is reported as one that is kept as a whole', () => {
  const kindAt = fc.constantFrom<Kind>('matched', ...allKinds);
  const mixture = fc.array(kindAt, { minLength: 1, maxLength: 120 });
  fc.assert(
    fc.property(
      mixture,
      fc.array(fc.nat(60), { maxLength: 40 }),
      fc.constantFrom(5, 1_000),
      (names, turns, listed) => {
        const planted = names.map((name, n) => kinds[name](n));
        const [hashed, whole] = [false, true].map((isWhole) =>
          reconcilePlanted(planted, { turns, listed, isWhole }),
        );
        expect(hashed?.tally.json()).toEqual(whole?.tally.json());
        expect(hashed?.ledger).toEqual(whole?.ledger);
        expect(hashed?.wanted).toEqual(whole?.wanted);
        for (const one of [account, { ...account, payTo: otherPayTo }])
          expect(hashed?.bridgeOf(one)).toEqual(whole?.bridgeOf(one));
      },
    ),
    propertyRuns(25),
  );
});

test('of a thousand payments that are on the chain as the ledger says, neither payments nor transfers are kept', () => {
  const planted = Array.from({ length: 1_000 }, (_, n) => kinds.matched(n));
  const { facts, kept, tally } = reconcilePlanted([...planted, kinds.amountEdited(1_001)]);
  expect(facts.payments()).toHaveLength(1);
  expect(kept).toHaveLength(1);
  expect(tally.countOfClass('matched')).toBe(1_000);
});

test('without breaks and open items, the ledger agrees with the chain to the atom', () => {
  const sound = [
    'matched',
    'matchedByReport',
    'recordedLate',
    'recordedEarly',
    'refunded',
    'sweep',
    'earlierPeriod',
  ] as const;
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...sound), { minLength: 1, maxLength: 60 }), (names) => {
      const { tally, transfers, ledger } = reconcilePlanted(names.map((name, n) => kinds[name](n)));
      expect([tally.countOf('break'), tally.countOf('open')]).toEqual([0, 0]);
      expect((ledger.in.get(key) ?? 0n) - (ledger.out.get(key) ?? 0n)).toBe(movedBy(transfers));
    }),
    propertyRuns(30),
  );
});

describe('the bridge from the closing of the books to that of the chain', () => {
  const accounts = [account, { ...account, payTo: otherPayTo }];

  test.each(allKinds)('is complete to the atom for %s', (kind) => {
    const { bridgeOf } = reconcilePlanted([kinds[kind](7)]);
    for (const one of accounts) expect(bridgeOf(one).not_explained).toBe('0');
  });

  test('is complete to the atom for any mixture, also where items are only counted', () => {
    const kindAt = fc.constantFrom<Kind>('matched', ...allKinds);
    const mixture = fc.array(kindAt, { minLength: 1, maxLength: 60 });
    fc.assert(
      fc.property(
        mixture,
        fc.array(fc.nat(60), { maxLength: 40 }),
        fc.constantFrom(5, 1_000),
        (names, turns, listed) => {
          const { bridgeOf } = reconcilePlanted(
            names.map((name, n) => kinds[name](n)),
            { turns, listed },
          );
          for (const one of accounts) expect(bridgeOf(one).not_explained).toBe('0');
        },
      ),
      propertyRuns(25),
    );
  });

  test('has a line for each item: recorded late, mined late, not final, missing, foreign', () => {
    const names = [
      'matched',
      'recordedLate',
      'occurredBefore',
      'beyondFinal',
      'unknownThatLanded',
      'plainTransfer',
    ] as const;
    const { lines, books } = reconcilePlanted(names.map((name, n) => kinds[name](n))).bridgeOf(account);
    expect(lines.map(({ reason, count, items }) => [reason, count, items.length])).toEqual([
      ['not_final', 1, 1],
      ['on_chain_without_event', 1, 1],
      ['recorded_after', 1, 1],
      ['unknown', 1, 1],
    ]);
    // jobs 0, 2 and 3 are booked, of 1000, 3000 and 1000 atoms
    expect(books).toBe('5000');
    expect(lines.map(({ atoms }) => atoms.startsWith('-'))).toEqual([true, false, false, false]);
  });
});

test('a sweep from one payee to another is an inflow of the second payee in the ledger and on the chain', () => {
  const { ledger, tally } = reconcilePlanted([kinds.sweptToOtherPayee(1)]);
  const other = { ...account, payTo: otherPayTo };
  expect([ledger.in.get(accountKey(other)), tally.net(other)]).toEqual([2_000n, 2_000n]);
  expect([ledger.out.get(key), tally.net(account)]).toEqual([2_000n, -2_000n]);
  const { ledger: later } = reconcilePlanted([kinds.sweptToOtherPayeeEarlier(1)]);
  expect([later.opening.get(accountKey(other)), later.opening.get(key)]).toEqual([2_000n, -2_000n]);
});

test('the payout of a spend does not count towards the balance of the payment token', () => {
  const { ledger, tally } = reconcilePlanted([kinds.spend(1), kinds.matched(2)]);
  expect(tally.countOfClass('spend')).toBe(1);
  expect(ledger.in.get(key)).toBe(3_000n);
});

test('a covered period has no items that are not final: a transfer in a later block belongs to the next period', () => {
  const planted = [kinds.beyondFinal(1)];
  const { tally } = reconcilePlanted(planted, { isCovered: true });
  expect(tally.json()).toMatchObject({ timing: { count: 1, items: [{ why: 'occurred_after' }] } });
});

test('a transfer by an authorization that the ledger does not know is distinguished from a plain transfer', () => {
  const planted = [kinds.foreignAuthorization(1), kinds.plainTransfer(2), kinds.failedThatLanded(3)];
  const { items = [] } = reconcilePlanted(planted).tally.json().on_chain_without_event ?? {};
  const observed = items.map(({ foreign, payer, why }) => ({ foreign, payer, why }));
  expect(observed).toContainEqual({ foreign: true, payer: stranger, why: undefined });
  expect(observed).toContainEqual({ foreign: false, payer: undefined, why: undefined });
  expect(observed).toContainEqual({ foreign: false, payer: expect.any(String), why: 'recorded_as_failed' });
});

test('a transfer that a receipt shows within the period but the logs do not is a contradiction and not a break', () => {
  const { transfers, events } = kinds.matched(5);
  const [transfer] = transfers;
  const is = { kind: 'mined', transfers, authorizations: [] } as const;
  const shown = { events, evidence: [{ transaction: transfer!.transaction, is }], expected: [] };
  const { contradictions, tally } = reconcilePlanted([shown]);
  expect(contradictions).toEqual(transfers);
  expect(tally.countOfClass('missing_on_chain')).toBe(0);
});

test('the payments before the period add up to its opening balance', () => {
  const planted = [
    kinds.earlierPeriod(3),
    kinds.earlierPeriod(4),
    kinds.deadLetteredEarlier(5),
    kinds.matched(6),
  ];
  const { ledger, tally } = reconcilePlanted(planted);
  // jobs 3, 4 and 5 cost 1000, 2000 and 3000 atoms
  expect(ledger.opening.get(key)).toBe(6_000n);
  expect(ledger.in.get(key)).toBe(1_000n);
  expect(tally.json().refund_due?.items).toMatchObject([{ carried: true }]);
});

test('small transfers beyond the listing limit are grouped by sender, counted and summed to the atom', () => {
  const dust = Array.from({ length: 500 }, (_, n) => kinds.plainTransfer(n));
  const planted = [...dust, kinds.matched(900), kinds.foreignAuthorization(901)];
  const { tally, transfers } = reconcilePlanted(planted, { listed: 100 });
  const found = tally.json().on_chain_without_event;
  expect(found).toMatchObject({ count: 501 });
  expect(found?.items).toHaveLength(100);
  expect(found?.groups).toMatchObject([{ counterparty: stranger, count: 401 }]);
  const all = [...(found?.items.map(({ chain_amount }) => chain_amount) ?? []), found?.groups[0]?.atoms];
  const strangers = transfers.filter(({ from }) => from === stranger);
  expect(all.reduce((sum, atoms) => sum + BigInt(atoms ?? 0), 0n)).toBe(
    strangers.reduce((sum, { amount }) => sum + amount, 0n),
  );
  expect(tally.countOfClass('matched')).toBe(1);
});

test('earlier small transfers do not hide the transfer of a payment with an unknown outcome', () => {
  const dust = Array.from({ length: 50 }, (_, n) => kinds.plainTransfer(n));
  const planted = [...dust, kinds.unknownThatLanded(900), kinds.failedThatLanded(901)];
  const { tally } = reconcilePlanted(planted, { receipts: 10, listed: 20 });
  expect(tally.json().unknown?.items).toMatchObject([{ why: 'landed' }]);
  expect(tally.countOfClass('on_chain_without_event')).toBe(51);
});

test('of a year of payments only those that are open or of the period are kept; the others are a sum', () => {
  const ranges = new Map([[network, { from: 1_000_000n, to: 2_000_000n, isCovered: true }]]);
  const facts = new LedgerFacts(
    { from: '2026-12-01T00:00:00.000Z', to: '2027-01-01T00:00:00.000Z' },
    ranges,
    () => false,
    () => false,
  );
  // 48,000 events, which are pruned twice
  const jobs = 12_000;
  const dayMs = 86_400_000;
  let seq = 0;
  let paid = 0n;
  for (let n = 0; n < jobs; n++) {
    const at = new Date(Date.parse('2026-01-01') + Math.floor((n * 300 * dayMs) / jobs)).toISOString();
    // every hundredth job is never delivered, and every second quote is never paid
    const jobEvents = paidJob(n, { startMs: Date.parse(at) }).slice(
      0,
      n % 2 === 0 ? (n % 100 === 0 ? 5 : 7) : 1,
    );
    for (const [index, { stream, event }] of jobEvents.entries()) {
      seq += 1;
      facts.take({ ...event, seq, stream, version: index + 1, at });
      if (event.type === 'payment_settled' && n % 100 !== 0) paid += BigInt(event.data.amount);
    }
  }
  const kept = facts.payments();
  const open = kept.filter(({ call }) => call?.status !== 'completed');
  expect(open).toHaveLength(jobs / 100);
  // besides the open payments, at most one week of payments and those since the last pruning
  expect(kept.length).toBeLessThan(jobs / 100 + 4_000);
  const rest = kept
    .filter(({ call }) => call?.status === 'completed')
    .reduce((sum, payment) => sum + amountOf(payment), 0n);
  expect((facts.opening.get(key) ?? 0n) + rest).toBe(paid);
});

const week = { from: '2026-12-01T00:00:00.000Z', to: '2026-12-08T00:00:00.000Z' };
const weekBlocks = new Map([[network, { from: 1_000_000n, to: 2_000_000n, isCovered: true }]]);

const soonAfter = (index: number) => new Date(Date.parse('2026-12-20') + index * 10).toISOString();

/** The events of other jobs: so many that the closed payments before them are pruned twice. */
const between = Array.from({ length: 6_000 }, (_, n) => paidJob(n + 1_000)).flat();

/** A ledger with these other jobs between the first events of one stream and its last. */
function foldedLate(early: Planted['events'], earlyAt: string, late: Planted['events'] = []) {
  const reopened = new ReopenedQuotes();
  const events = [
    ...early.map(({ stream, event }) => ({ stream, event, at: earlyAt })),
    ...between.map(({ stream, event }, index) => ({ stream, event, at: soonAfter(index) })),
    ...late.map(({ stream, event }) => ({ stream, event, at: '2026-12-28T00:00:00.000Z' })),
  ].map(({ event, ...place }, index) => ({ ...event, ...place, seq: index + 1, version: 1 }));
  for (const event of events) reopened.skim(event);
  const facts = new LedgerFacts(
    week,
    weekBlocks,
    (digest) => reopened.has(digest),
    () => false,
  );
  for (const event of events) facts.take(event);
  return facts;
}

describe('an event recorded weeks after its payment was closed', () => {
  test.each(['refundedLate', 'reorgedLate', 'confirmedLate', 'settledLate'] as const)(
    'is applied to its payment: %s',
    (name) => {
      const { events, later, finalStatus } = lateEvents[name](7);
      const facts = foldedLate(events, '2026-11-01T00:00:00.000Z', later);
      const [payment] = facts.payments().filter(({ quoteDigest }) => quoteDigest === events[0]?.stream);
      expect(payment?.status ?? 'settled').toBe(finalStatus);
    },
  );

  test('a failed payment of the period is still kept when its transfer is found on the chain', () => {
    const { events } = kinds.failedThatLanded(7);
    const facts = foldedLate(events, '2026-12-03T00:00:00.000Z');
    const statuses = facts.payments().filter(({ quoteDigest }) => quoteDigest === events[0]?.stream);
    expect(statuses).toMatchObject([{ status: 'settlement_failed' }]);
  });
});
