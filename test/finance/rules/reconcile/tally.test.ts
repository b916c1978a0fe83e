import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type ItemFields, Tally } from '../../../../src/finance/rules/reconcile/tally.ts';
import type { ChainTransfer } from '../../../../src/payments/rules/chain-transfer.ts';
import { asset, network, payTo } from './builders.ts';
import { propertyRuns } from '../../../support/property-runs.ts';

const payees = new Set([`${network}/${payTo}`]);
const payments = 5_000;
const payers = 2_300;

function matchedAt(seq: number): readonly [ItemFields, ChainTransfer] {
  const payer = `0x${((seq * 7_919) % payers).toString(16).padStart(40, '0')}`;
  const place = {
    network,
    asset,
    transaction: `0x${seq}`,
    blockNumber: BigInt(seq),
    blockHash: '0x',
    logIndex: 0,
  };
  const transfer = { ...place, from: payer, to: payTo, amount: BigInt(seq) };
  return [
    {
      of: 'payment',
      network,
      asset,
      pay_to: payTo,
      seq,
      payer,
      chain_amount: String(seq),
      transaction: `0x${seq}`,
    },
    transfer,
  ];
}

function reportOf(order: readonly number[], listed: number) {
  const tally = new Tally(payees, listed);
  for (const seq of order) tally.addPlain(...matchedAt(seq));
  return tally.json().matched;
}

test('matched payments of more payers than have groups are listed and grouped alike in whatever order they are found', () => {
  const inOrder = Array.from({ length: payments }, (_, n) => n + 1);
  const listed = 50;
  const expected = reportOf(inOrder, listed);
  expect(expected?.items.map(({ seq }) => seq)).toEqual(inOrder.slice(0, listed));
  const grouped = expected?.groups ?? [];
  expect(grouped.length).toBe(1_001);
  expect(grouped.reduce((sum, { count }) => sum + count, 0)).toBe(payments - listed);
  const sum = inOrder.slice(listed).reduce((all, seq) => all + seq, 0);
  expect(grouped.reduce((all, { atoms }) => all + Number(atoms), 0)).toBe(sum);
  fc.assert(
    fc.property(fc.shuffledSubarray(inOrder, { minLength: payments }), (order) => {
      expect(reportOf(order, listed)).toEqual(expected);
    }),
    propertyRuns(3),
  );
});
