import { expect, test } from 'vitest';
import type { LedgerEvent } from '../../../src/ledger/rules/event.ts';
import { hex32Of, paidJob, refundOf, type StreamEvent } from '../../support/synthetic-ledger.ts';
import { verdictOn } from '../../support/verify.ts';

const delivered = paidJob(1);
const callId = delivered.flatMap(({ event }) => (event.type === 'enqueued' ? [event.data.call_id] : []))[0]!;
const refunded = refundOf(delivered);
const { network, asset, payer, payment_nonce, amount } = refunded.event.data as Readonly<
  Record<string, string>
>;
const { stream } = refunded;
const named = { network, asset, payer, payment_nonce };

const event = (type: string, data: object): StreamEvent => ({ stream, event: { type, data } as LedgerEvent });
const dead = event('dead_lettered', { call_id: callId, attempt: 1, reason: 'status_400' });
/** A paid job whose call is a dead letter. */
const owed = [...delivered.filter(({ event: { type } }) => type !== 'completed'), dead];
const started = (change: object = {}) =>
  event('refund_started', {
    ...named,
    amount,
    refund_to: payer,
    since_block: '7',
    operator: 'ada',
    ...change,
  });
const withNonce = started({ sender: `0x${'90'.repeat(20)}`, sender_nonce: 4 });
const sent = event('refund_sent', { ...named, transaction: hex32Of('sent'), operator: 'ada' });
const sentByOther = event('refund_sent', {
  ...named,
  transaction: hex32Of('sent'),
  sender: `0x${'77'.repeat(20)}`,
  sender_nonce: 3,
  operator: 'ada',
});
const notSent = event('refund_not_sent', { ...named, why: 'not seen', operator: 'ada' });
const block = { block_number: '9', block_hash: hex32Of('a final block') };
const abandoned = (proof: string, change: object = {}) =>
  event('refund_abandoned', { ...named, proof, operator: 'bob', ...change });
const settledBefore = delivered.find(({ event: { type } }) => type === 'payment_settled')!.event
  .data as Readonly<Record<string, unknown>>;
const reorged = event('settlement_reorged', {
  ...named,
  transaction: settledBefore['transaction'],
  block_number: settledBefore['block_number'],
  block_hash: settledBefore['block_hash'],
  call: 'kept',
});
const requeued = event('operator_requeued', { call_id: callId });
const part = refundOf(delivered, 1, { amount: '1' });

test.each<[string, StreamEvent[]]>([
  ['recorded', [...owed, started(), sent, refunded]],
  ['recorded by a transaction that nobody noted', [...owed, started(), refunded]],
  ['recorded after its payment was taken back', [...owed, started(), reorged, refunded]],
  ['of what an earlier one left', [...owed, part, started({ amount: String(BigInt(amount!) - 1n) })]],
  [
    'given up by two operators, and its call delivered',
    [...owed, started(), notSent, abandoned('operators'), requeued],
  ],
  [
    'given up because its nonce was spent otherwise',
    [...owed, withNonce, abandoned('nonce_spent', block), started()],
  ],
])('both verifiers accept a started refund that is %s', async (_, events) =>
  expect(await verdictOn(events)).toBe('sound'),
);

test.each<[string, StreamEvent[]]>([
  ['a refund that is started beside another one', [...owed, started(), started()]],
  ['a refund that is started of a call that was delivered', [...delivered, started()]],
  ['a refund that is started of a call in the queue', [...owed, requeued, started()]],
  ['a refund that is started of more than is left', [...owed, part, started()]],
  ['a refund that is started of nothing', [...owed, started({ amount: '0' })]],
  ['a refund that is started to another address', [...owed, started({ refund_to: `0x${'66'.repeat(20)}` })]],
  ['a call that is queued again beside its refund', [...owed, started(), requeued]],
  ['the record of another amount than the one that was started', [...owed, started(), part]],
  [
    'the refund of a payment that was taken back, and of which none was started',
    [...owed, reorged, refunded],
  ],
  ['a transaction of a refund that nobody has started', [...owed, sent]],
  ['the end of a refund that nobody has started', [...owed, abandoned('operators')]],
  [
    'a refund that one operator gives up alone',
    [...owed, started(), notSent, abandoned('operators', { operator: 'Ada' })],
  ],
  ['a refund that is given up by the first who says so', [...owed, started(), abandoned('operators')]],
  [
    'what was said before the wallet named a transaction',
    [...owed, started(), notSent, sent, abandoned('operators')],
  ],
  ['a nonce that was spent and never named', [...owed, started(), abandoned('nonce_spent', block)]],
  ['a nonce that was spent in no block', [...owed, withNonce, abandoned('nonce_spent')]],
  [
    'the nonce of another account than the one that the refund was started for',
    [...owed, started(), sentByOther, abandoned('nonce_spent', block)],
  ],
])('both verifiers reject %s', async (_, events) => expect(await verdictOn(events)).not.toBe('sound'));
