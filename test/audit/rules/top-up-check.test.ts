import { expect, test } from 'vitest';
import type { LedgerEvent } from '../../../src/ledger/rules/event.ts';
import { inputsHashOf } from '../../../src/payments/rules/quote.ts';
import { sha256 } from '../../../src/base/values/sha256.ts';
import { paidJob, refundOf, type StreamEvent } from '../../support/synthetic-ledger.ts';
import { verdictOn } from '../../support/verify.ts';

const job = paidJob(1, { creditMicros: '2000' });
const { network, asset, payer } = job[3]!.event.data as Readonly<Record<string, string>>;
const quote = { call_id: 2, quote_digest: job[0]!.stream };
const accountEvent = (type: string, data: object, accountId = 1): StreamEvent => ({
  stream: `account:${accountId}`,
  event: { type, data: { account_id: accountId, ...data } } as LedgerEvent,
});
const opened = (accountId = 1): StreamEvent =>
  accountEvent('credit_account_opened', { name: `user:${accountId}` }, accountId);
const toppedUp = (change: object = {}, accountId = 1): StreamEvent =>
  accountEvent(
    'credit_topped_up',
    {
      ...quote,
      amount_micros: '2000',
      network,
      asset,
      symbol: 'USDC',
      decimals: 6,
      atoms: '2000',
      payer,
      ...change,
    },
    accountId,
  );
const reversed = (taken: string, missing: string, change: object = {}, accountId = 1): StreamEvent =>
  accountEvent(
    'credit_reversed',
    { ...quote, amount_micros: taken, missing_micros: missing, ...change },
    accountId,
  );
const paid = [...job, opened()];

/** The paid call, whose body orders its credit for account 1. */
function ordered(change: object = {}): StreamEvent[] {
  const order = `tollbook-top-up:1:1:1900000000:${'s'.repeat(22)}:${'m'.repeat(43)}`;
  const paidFor = { top_up_order: order, body_sha256: sha256(order), ...change };
  return paidJob(1, { creditMicros: '2000', nonce: sha256(order) }).map(({ stream, event }) => ({
    stream,
    event: event.type === 'settlement_started' ? { ...event, data: { ...event.data, ...paidFor } } : event,
  }));
}

/** The same for an order of several units, by a quote for one body alone, or for any. */
function orderedUnits(units: number, boundTo: 'order' | 'another order' | 'any' = 'order'): StreamEvent[] {
  const order = `tollbook-top-up:2:1:${units}:1900000000:${'s'.repeat(22)}:${'m'.repeat(43)}`;
  const hash = inputsHashOf(Buffer.from(boundTo === 'order' ? order : boundTo));
  const bound = boundTo === 'any' ? {} : { inputsHash: hash, bodyKeccak256: hash };
  const paidFor = { top_up_order: order, body_sha256: sha256(order) };
  return paidJob(1, { creditMicros: '2000', nonce: sha256(order), ...bound }).map(({ stream, event }) => ({
    stream,
    event: event.type === 'settlement_started' ? { ...event, data: { ...event.data, ...paidFor } } : event,
  }));
}
const boughtBy = (events: readonly StreamEvent[]) => toppedUp({ quote_digest: events[0]!.stream });

test.each<[string, StreamEvent[]]>([
  [
    'granted for an order of several units, by the quote for it',
    [...orderedUnits(2), opened(), boughtBy(orderedUnits(2))],
  ],
  ['granted for a paid call', [...paid, toppedUp()]],
  ['granted before its call is completed', [...job.slice(0, 5), opened(), toppedUp(), ...job.slice(5)]],
  ['granted to the account that its order names', [...ordered(), opened(), toppedUp()]],
  ['reversed in full', [...paid, toppedUp(), reversed('2000', '0')]],
  ['reversed in part, with the rest missing', [...paid, toppedUp(), reversed('500', '1500')]],
  [
    'reversed for each part of its payment that was refunded, rounded down in sum',
    [
      ...paid,
      toppedUp(),
      refundOf(job, 1, { amount: '500' }),
      reversed('500', '0', { atoms: '500' }),
      refundOf(job, 2, { amount: '1500' }),
      reversed('1000', '500'),
    ],
  ],
])('both verifiers accept credit that is %s', async (_, events) =>
  expect(await verdictOn(events)).toBe('sound'),
);

test.each<[string, StreamEvent[], RegExp]>([
  [
    'for a call that was never enqueued',
    [...job.slice(0, 4), opened(), toppedUp()],
    /there is no payment of/,
  ],
  ['of another amount than its quote sells', [...paid, toppedUp({ amount_micros: '2001' })], /not sell/],
  [
    'for a quote that sells none',
    [...paidJob(1), opened(), toppedUp({ quote_digest: paidJob(1)[0]!.stream })],
    /not sell/,
  ],
  ['for another call', [...paid, toppedUp({ call_id: 3 })], /there is no payment of/],
  [
    'for a quote that does not exist',
    [...paid, toppedUp({ quote_digest: `0x${'a'.repeat(64)}` })],
    /there is no payment of/,
  ],
  ['for more than was paid', [...paid, toppedUp({ atoms: '3000' })], /there is no payment of/],
  ['to a payer who has not paid', [...paid, toppedUp({ payer: asset })], /there is no payment of/],
  ['in another token', [...paid, toppedUp({ asset: payer })], /there is no payment of/],
  ['twice', [...paid, toppedUp(), toppedUp()], /bought credit/],
  ['twice, to two accounts', [...paid, opened(2), toppedUp(), toppedUp({}, 2)], /bought credit/],
  [
    'to another account than its payer has ordered',
    [...ordered(), opened(1), opened(2), toppedUp({}, 2)],
    /has ordered the credit for/,
  ],
  [
    'by an order that is not the body of its request',
    [...ordered({ body_sha256: sha256('x') }), opened(), toppedUp()],
    /order is not the body/,
  ],
  [
    'by an order that its payer has not signed',
    [
      ...ordered({ top_up_order: `tollbook-top-up:1:2:1900000000:${'s'.repeat(22)}:${'m'.repeat(43)}` }),
      opened(),
      toppedUp(),
    ],
    /order is not the body/,
  ],
  [
    'by an order of several units that pays a quote for any order',
    [...orderedUnits(2, 'any'), opened()],
    /quote is not for this order alone/,
  ],
  [
    'by an order of several units that pays the quote of another order',
    [...orderedUnits(2, 'another order'), opened()],
    /quote is not for this order alone/,
  ],
  [
    'by an order of several units whose price is no multiple',
    [...orderedUnits(3), opened()],
    /costs no multiple of 3/,
  ],
  ['never, but is reversed', [...paid, reversed('0', '2000')], /bought/],
  [
    'and is reversed twice',
    [...paid, toppedUp(), reversed('500', '1500'), reversed('500', '1500')],
    /bought/,
  ],
  [
    'and is reversed from another account',
    [...paid, opened(2), toppedUp(), reversed('0', '2000', {}, 2)],
    /bought/,
  ],
  [
    'and is reversed for more than was refunded',
    [...paid, toppedUp(), refundOf(job, 1, { amount: '500' }), reversed('501', '0', { atoms: '501' })],
    /more atoms than were refunded/,
  ],
  [
    'and is reversed by another amount than the part that was refunded bought',
    [...paid, toppedUp(), refundOf(job, 1, { amount: '500' }), reversed('501', '0', { atoms: '500' })],
    /add up to another sum|not what the atoms/,
  ],
  ['and is reversed in part only', [...paid, toppedUp(), reversed('500', '1000')], /bought/],
])('both verifiers reject bought credit that is granted %s', async (_, events, words) =>
  expect(await verdictOn(events)).toMatch(words),
);
