import { expect, test } from 'vitest';
import {
  costOf,
  costReversalOf,
  explained,
  hex32Of,
  paidJob,
  payTo,
  placeOfReturn,
  refundOf,
  returnOf,
  reversalOf,
  sweepOf,
  transferOf,
  type StreamEvent,
} from '../../support/synthetic-ledger.ts';
import { verdictOn } from '../../support/verify.ts';

const job = paidJob(0);

/** The place of the n-th transfer that is not a payment. */
function placeOf(n: number): object {
  const { transaction, block_number, block_hash, log_index } = transferOf(n).event.data as Readonly<
    Record<string, unknown>
  >;
  return { transaction, block_number, block_hash, log_index };
}

test.each<[string, StreamEvent[]]>([
  ['refunds and sweeps', [refundOf(job, 1), sweepOf(1), sweepOf(2)]],
  [
    'money in suspense that is kept, or given back',
    [transferOf(1), transferOf(1, { as: 'income' }), transferOf(2), transferOf(2, returnOf(2))],
  ],
  [
    'a record of a transfer that is reversed, and the refund that the transfer was',
    [transferOf(1), transferOf(1, returnOf(1)), reversalOf(1), refundOf(job, 1, placeOf(1))],
  ],
  [
    'a transfer that is recorded again after its record was reversed',
    [transferOf(1), reversalOf(1), transferOf(1, { as: 'own', received_from: payTo }), sweepOf(1)],
  ],
  ['a break that is explained, and explained otherwise', [explained(), explained({ as: 'open' })]],
  ['what transactions cost', [costOf(1), costOf(2, { l1_fee_wei: '9' })]],
  [
    'what a transaction cost, taken back and recorded again, for another purpose',
    [costOf(1), costReversalOf(costOf(1)), costOf(1, { purpose: 'sweep' })],
  ],
])('both verifiers accept %s', async (_, events) =>
  expect(await verdictOn([...job, ...events])).toBe('sound'),
);

const otherPayer = { payer: `0x${'66'.repeat(20)}` };

test.each<[string, StreamEvent[], RegExp]>([
  ['money in suspense twice', [transferOf(1), transferOf(1)], /only money in suspense becomes income/],
  [
    'income that is given back afterwards',
    [transferOf(1, { as: 'income' }), transferOf(1, returnOf(1))],
    /only money in suspense becomes income/,
  ],
  [
    'money given back that never came',
    [transferOf(1, returnOf(1))],
    /must come before it is missing|in suspense/,
  ],
  [
    'money given back by no transfer',
    [transferOf(1), transferOf(1, { as: 'returned' })],
    /returned by another transfer/,
  ],
  [
    'money in suspense whose amount grows',
    [transferOf(1), transferOf(1, { as: 'income', amount: '999' })],
    /describes another transfer/,
  ],
  [
    "a payee's transfer to itself as income",
    [transferOf(1, { as: 'income', received_from: payTo })],
    /operator's own/,
  ],
  ['a reversal of what was never recorded', [reversalOf(1)], /must come before it is missing/],
  ['a reversal after a reversal', [transferOf(1), reversalOf(1), reversalOf(1)], /transfer is reversed/],
  [
    'one transfer that gives two amounts back',
    [transferOf(1), transferOf(1, returnOf(1)), transferOf(2), transferOf(2, returnOf(1))],
    /transfer was claimed before/,
  ],
  [
    'money in suspense whose transfer is a refund',
    [refundOf(job, 1, placeOf(1)), transferOf(1)],
    /transfer was claimed before/,
  ],
  [
    'a refund whose transfer gave other money back',
    [transferOf(1), transferOf(1, returnOf(1)), refundOf(job, 1, placeOfReturn(1))],
    /transfer was claimed before/,
  ],
  [
    'an explanation in the stream of another break',
    [{ ...explained(), stream: `break:${hex32Of('another')}` }],
    /do not match the entity of its stream/,
  ],
  [
    'a transfer in the stream of another one',
    [{ ...transferOf(1), stream: transferOf(2).stream }],
    /do not match the entity of its stream/,
  ],
  [
    'a cost that is taken back twice',
    [costOf(1), costReversalOf(costOf(1)), costReversalOf(costOf(1))],
    /cost is reversed/,
  ],
  ['a cost that is taken back and was never recorded', [costReversalOf(costOf(1))], /before it is missing/],
  [
    'a reversal of more than a transaction cost',
    [costOf(1), costReversalOf(costOf(1), { gas_used: '50001' })],
    /takes back another cost/,
  ],
  [
    'a reversal of what another account paid',
    [costOf(1), costReversalOf(costOf(1), otherPayer)],
    /takes back another cost/,
  ],
  ['what a transaction cost, twice', [costOf(1), costOf(1)], /cost is recorded/],
  [
    'what a transaction cost, in the stream of another one',
    [{ ...costOf(1), stream: costOf(2).stream }],
    /do not match the entity of its stream/,
  ],
])('both verifiers reject %s', async (_, events, words) =>
  expect(await verdictOn([...job, ...events])).toMatch(words),
);
