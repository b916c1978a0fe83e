import { expect, test } from 'vitest';
import type { RecordedEvent } from '../../../src/ledger/rules/event.ts';
import { createRecords, paymentKey, type RouteAnswer, type SignedOnce } from '../records.ts';
import { meteredViolations, paidTooMuch, usedOf } from './metered.ts';
import type { RecordedPayment } from './payments.ts';

const [asset, payer, nonce, stream] = ['0xa', '0xb', '0xc', '0xd'];
const key = paymentKey(asset, payer, nonce);
const half: RouteAnswer = {
  status: 200,
  sha256: '0xe',
  prices: ['500000000000000'],
  isPricedLast: false,
};

interface Seen {
  readonly moved?: readonly bigint[];
  readonly answer?: RouteAnswer;
  readonly isOnRecord?: boolean;
  readonly isOthers?: boolean;
  readonly calls?: number[];
  readonly amount?: string;
  readonly log?: number | undefined;
}

/** A payment of at most 100 atoms, of whose answer a half was used and moved. */
function factsOf(seen: Seen) {
  const { moved = [50n], answer = half, isOnRecord = true, isOthers = false, calls = [1], amount } = seen;
  const log = 'log' in seen ? seen.log : 0;
  const records = createRecords();
  const payment = {
    accepted: { scheme: 'upto' },
    payload: { permit2Authorization: { from: payer, nonce: '12', permitted: { amount: '100' } } },
  };
  records.signed.set(key, { key, asset, payer, nonce, payment } as unknown as SignedOnce);
  records.routeCalls.push({ stream, answer } as (typeof records.routeCalls)[number]);
  if (isOthers) records.movedOtherwise.add(key);
  const settled = moved.map((atoms) => ({ data: { amount: amount ?? String(atoms), log_index: log } }));
  const answered = {
    type: 'upstream_answered',
    stream,
    data: { payment_nonce: nonce, result_sha256: '0xe' },
  };
  return {
    records,
    transfers: moved.map((atoms, logIndex) => ({
      key,
      asset,
      payer,
      to: '',
      nonce,
      transaction: '',
      logIndex,
      amount: atoms,
    })),
    payments: new Map([[key, { key, stream, nonce, settled, calls } as unknown as RecordedPayment]]),
    events: (isOnRecord ? [answered] : []) as unknown as RecordedEvent[],
  };
}

const kindsOf = (seen: Seen = {}) => [...meteredViolations(factsOf(seen))].map(({ kind }) => kind);

test('a payment by upto that moves what its answer has used breaks nothing', () => {
  expect(kindsOf()).toEqual([]);
});

test.each<[string, string, Seen]>([
  ['more than was used', 'moved_otherwise', { moved: [51n] }],
  ['less than was used', 'moved_otherwise', { moved: [49n] }],
  ['two transfers', 'moved_otherwise', { moved: [50n, 50n] }],
  ['a transfer for an answer that is free', 'moved_otherwise', { answer: { ...half, prices: ['0'] } }],
  ['a transfer for an answer without a price', 'moved_otherwise', { answer: { ...half, prices: [] } }],
  ['a transfer without an answer on record', 'moved_otherwise', { isOnRecord: false }],
  ['a delivery for more than was used', 'delivered_for_too_much', { moved: [100n], isOthers: true }],
  ['a settlement that names no log', 'settled_by_word', { log: undefined }],
  ['another amount on record than was moved', 'wrong_evidence', { amount: '51' }],
])('%s is a violation', (_what, kind, seen) => {
  expect(kindsOf(seen)).toContain(kind);
});

test.each([40n, 100n])(
  '%s atoms that the facilitator moves by itself are no fault of the gateway',
  (atoms) => {
    expect(kindsOf({ moved: [atoms], isOthers: true, calls: atoms > 50n ? [] : [1] })).toEqual([]);
  },
);

test('a payment that has moved more than was used is owed back', () => {
  expect([...paidTooMuch(factsOf({ moved: [51n] }))]).toEqual([key]);
  expect([...paidTooMuch(factsOf({ moved: [50n] }))]).toEqual([]);
});

test.each<[readonly string[], bigint | undefined]>([
  [['1'], 1n],
  [['500000000000000'], 50n],
  [['510000000000001'], 52n],
  [['0'], 0n],
  [['1000000000000001'], undefined],
  [['NaN'], undefined],
  [['1', '2'], undefined],
  [[], undefined],
])('an answer that says %j uses %s of 100 atoms', (prices, used) => {
  expect(usedOf({ prices }, 100n)).toBe(used);
});
