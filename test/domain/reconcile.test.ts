import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  account,
  allKinds,
  foundIn,
  key,
  type Kind,
  kinds,
  payTo,
  type Planted,
  reconcilePlanted,
  stranger,
} from './reconcile-support.ts';

const expectedOf = (planted: readonly Planted[]): string[] =>
  planted.flatMap(({ expected }) => expected.map((pair) => pair.join(' '))).toSorted();

describe('of one thing', () => {
  test.each(allKinds)('%s is said what it is, and nothing else', (kind) => {
    const planted = [kinds[kind](7)];
    expect(foundIn(reconcilePlanted(planted).tally)).toEqual(expectedOf(planted));
  });
});

test('in a ledger of any mixture everything is found in its class, once, and nothing besides', () => {
  const kindAt = fc.constantFrom<Kind>('matched', ...allKinds);
  const mixture = fc.array(kindAt, { minLength: 1, maxLength: 120 });
  fc.assert(
    fc.property(mixture, fc.array(fc.nat(60), { maxLength: 40 }), (names, turns) => {
      const planted = names.map((name, n) => kinds[name](n));
      const { tally, transfers, ledger, contradictions } = reconcilePlanted(planted, { turns });
      expect(foundIn(tally)).toEqual(expectedOf(planted));
      expect(contradictions).toEqual([]);
      // every transfer is in one class: they add up to what the chain moved
      const own = transfers.filter(({ asset }) => asset === account.asset);
      const moved = own.reduce(
        (sum, { from, to, amount }) => sum + (to === payTo ? amount : 0n) - (from === payTo ? amount : 0n),
        0n,
      );
      expect(tally.net(account)).toBe(moved);
      // and where nothing is broken or open, both say the same
      const isWhole = tally.countOf('break') === 0 && tally.countOf('open') === 0;
      if (isWhole) expect((ledger.in.get(key) ?? 0n) - (ledger.out.get(key) ?? 0n)).toBe(moved);
    }),
    { numRuns: 300 },
  );
});

test('a period that is covered has nothing that is not final: what is in a later block is of the next one', () => {
  const planted = [kinds.beyondFinal(1)];
  const { tally } = reconcilePlanted(planted, { isCovered: true });
  expect(tally.json()).toMatchObject({ timing: { count: 1, items: [{ why: 'occurred_after' }] } });
});

test('money of an authorization that the ledger never saw is told from a plain transfer', () => {
  const planted = [kinds.foreignAuthorization(1), kinds.plainTransfer(2), kinds.failedThatLanded(3)];
  const { items = [] } = reconcilePlanted(planted).tally.json().on_chain_without_event ?? {};
  const seen = items.map(({ foreign, payer, why }) => ({ foreign, payer, why }));
  expect(seen).toContainEqual({ foreign: true, payer: stranger, why: undefined });
  expect(seen).toContainEqual({ foreign: false, payer: undefined, why: undefined });
  expect(seen).toContainEqual({ foreign: false, payer: expect.any(String), why: 'recorded_as_failed' });
});

test('a transfer that a receipt shows within the period and the logs do not is a contradiction, no verdict', () => {
  const { transfers = [], events } = kinds.matched(5);
  const [transfer] = transfers;
  const is = {
    kind: 'receipt',
    blockNumber: transfer!.blockNumber,
    isReverted: false,
    transfers,
    authorizations: [],
  } as const;
  const shown = { events, evidence: [{ transaction: transfer!.transaction, is }], expected: [] };
  const { contradictions, tally } = reconcilePlanted([shown]);
  expect(contradictions).toEqual(transfers);
  expect(tally.countOfClass('missing_on_chain')).toBe(0);
});

test('what was paid before the period is summed, and is what the period opens with', () => {
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

test('dust beyond what can be listed is grouped by sender, counted and summed to the atom', () => {
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
