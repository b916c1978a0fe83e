import { expect, test } from 'vitest';
import { expectIndependent } from '../../../support/independent.ts';
import { temporaryFolder } from '../../../support/program.ts';
import { busyLedger, costOf, costReversalOf, type StreamEvent } from '../../../support/synthetic-ledger.ts';
import { verifyBoth, writeExport } from '../../../support/verify.ts';

const busy = busyLedger().take(10).toArray();

test.each<[string, StreamEvent[], RegExp | undefined]>([
  ['what transactions cost', [costOf(1), costOf(2, { l1_fee_wei: '9' })], undefined],
  [
    'what a transaction cost, taken back and recorded again, for another purpose',
    [costOf(1), costReversalOf(costOf(1)), costOf(1, { purpose: 'sweep' })],
    undefined,
  ],
  [
    'a cost that is taken back twice',
    [costOf(1), costReversalOf(costOf(1)), costReversalOf(costOf(1))],
    /cost (?:that )?is reversed/,
  ],
  [
    'a cost that is taken back and was never recorded',
    [costReversalOf(costOf(1))],
    /before it is missing|cost that is missing/,
  ],
  [
    'a reversal of more than a transaction cost',
    [costOf(1), costReversalOf(costOf(1), { gas_used: '50001' })],
    /takes back another cost/,
  ],
  [
    'a reversal of what another account paid',
    [costOf(1), costReversalOf(costOf(1), { payer: `0x${'66'.repeat(20)}` })],
    /takes back another cost/,
  ],
  ['what a transaction cost, twice', [costOf(1), costOf(1)], /cost (?:that )?is recorded/],
  [
    'what a transaction cost, in the stream of another one',
    [{ ...costOf(1), stream: costOf(2).stream }],
    /do not match the entity of its stream/,
  ],
])('both verifiers agree on %s', async (_, more, words) => {
  const dir = temporaryFolder();
  writeExport(dir, [...busy, ...more]);
  const { isSound, text, independent } = await verifyBoth(dir, ['new.ckpt']);
  expect(isSound).toBe(words === undefined);
  expect(text).toMatch(words ?? /\d+ events/);
  expectIndependent(independent, words === undefined, words ?? /\d+ events/);
});
