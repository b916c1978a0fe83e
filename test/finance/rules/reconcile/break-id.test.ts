import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { breakId } from '../../../../src/finance/rules/reconcile/report.ts';
import { allClasses, itemClasses } from '../../../../src/finance/rules/reconcile/reconcile.ts';
import type { ItemFields, Tally } from '../../../../src/finance/rules/reconcile/tally.ts';
import { allKinds, type Kind, kinds } from './support.ts';
import { reconcilePlanted } from './scenario.ts';
import { propertyRuns } from '../../../support/property-runs.ts';

function breaksIn(tally: Tally): string[] {
  const classes = tally.json();
  return allClasses
    .filter((name) => itemClasses[name] === 'break')
    .flatMap((name) => (classes[name]?.items ?? []).map((item) => breakId(name, item)));
}

const transfer: ItemFields = {
  of: 'transfer',
  network: 'eip155:84532',
  asset: `0x${'5f'.repeat(20)}`,
  pay_to: `0x${'90'.repeat(20)}`,
  chain_amount: '5',
  transaction: `0x${'01'.repeat(32)}`,
  log_index: 3,
};

describe('the id of a break', () => {
  test('differs for different breaks, and is the same in whatever order the ledger has them', () => {
    const mixture = fc.array(fc.constantFrom<Kind>(...allKinds), { minLength: 1, maxLength: 60 });
    fc.assert(
      fc.property(mixture, fc.array(fc.nat(60), { maxLength: 40 }), (names, turns) => {
        const planted = names.map((name, n) => kinds[name](n));
        const ids = breaksIn(reconcilePlanted(planted).tally);
        expect(new Set(ids).size).toBe(ids.length);
        expect(breaksIn(reconcilePlanted(planted, { turns }).tally).toSorted()).toEqual(ids.toSorted());
      }),
      propertyRuns(15),
    );
  });

  test('does not depend on its event, its block or on what only some runs find out', () => {
    const id = breakId('on_chain_without_event', transfer);
    const found = { payer: transfer.pay_to, payment_nonce: transfer.transaction, foreign: true } as const;
    const other = { ...transfer, ...found, seq: 7, why: 'receipt_not_asked', block_number: '9' };
    expect(breakId('on_chain_without_event', other)).toBe(id);
  });

  test.each<Partial<ItemFields>>([
    { asset: `0x${'6e'.repeat(20)}` },
    { transaction: `0x${'02'.repeat(32)}` },
    { log_index: 4 },
    { chain_amount: '6' },
    { network: 'eip155:1' },
    { quote_digest: `0x${'03'.repeat(32)}` },
  ])('is another one with %o', (change) => {
    const id = breakId('foreign_use', transfer);
    expect(breakId('foreign_use', { ...transfer, ...change })).not.toBe(id);
    expect(breakId('on_chain_without_event', transfer)).not.toBe(id);
  });
});
