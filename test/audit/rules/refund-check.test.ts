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

const failedAttempt = event('delivery_failed', { call_id: callId, attempt: 1, reason: 'status_500' });
const beforeEnd = owed.slice(0, -1);
const failing = [...beforeEnd, failedAttempt];
const answered = (status: number) => [
  ...beforeEnd,
  event('completed', { call_id: callId, attempt: 1, http_status: status }),
];
const asked = event('refund_requested', {
  ...named,
  reason_sha256: hex32Of('too late'),
  signature: `0x${'51'.repeat(65)}`,
});
const granted = event('refund_request_granted', { ...named, operator: 'ada' });
const declined = event('refund_request_declined', { ...named, why: 'it is right', operator: 'ada' });
const givenUp = event('operator_discarded', { call_id: callId, why: 'asked for', operator: 'ada' });
const completedAgain = event('completed', { call_id: callId, attempt: 2 });

test.each<[string, StreamEvent[]]>([
  [
    'of a call whose attempt failed, and that is granted',
    [...failing, asked, dead, givenUp, granted, started()],
  ],
  ['of a call whose attempt failed, and that is declined', [...failing, asked, declined, completedAgain]],
  ['of a dead letter', [...owed, asked, started(), refunded]],
  ['of a dead letter that is delivered after all', [...owed, asked, requeued, completedAgain]],
  ['of an answer that failed, and that is refunded', [...answered(404), asked, granted, started(), refunded]],
  ['of an answer that failed, and that is declined', [...answered(404), asked, declined]],
])('both verifiers accept a request for a refund %s', async (_, events) =>
  expect(await verdictOn(events)).toBe('sound'),
);

test.each<[string, StreamEvent[]]>([
  ['a request for the refund of a call that has not failed', [...beforeEnd, asked]],
  ['a request for the refund of a call that was delivered', [...answered(200), asked]],
  [
    'a request for the refund of a call that was delivered at a later attempt',
    [...failing, completedAgain, asked],
  ],
  [
    'a request for the refund of a call whose client has left in the middle of its answer',
    [...failing, event('delivery_failed', { call_id: callId, attempt: 2, reason: 'client_left' }), asked],
  ],
  ['a request for the refund of a refunded payment', [...owed, refunded, asked]],
  ['a second request', [...owed, asked, asked]],
  ['a request that follows a declined one', [...answered(404), asked, declined, asked]],
  ['a refund that is granted and was not asked for', [...answered(404), granted]],
  ['a refund that is granted after it was declined', [...answered(404), asked, declined, granted]],
  ['a refund that is granted of a call that may still be delivered', [...failing, asked, granted]],
  ['a request that is declined of a call that was given up', [...failing, asked, dead, givenUp, declined]],
  ['a request that is declined though the refund is due', [...owed, asked, declined]],
  [
    'a decision about a request that a delivery has ended',
    [...owed, asked, requeued, completedAgain, granted],
  ],
  ['a refund that is started of an answer before it was granted', [...answered(404), asked, started()]],
  [
    'a refund that is started of an answer whose request was declined',
    [...answered(404), asked, declined, started()],
  ],
])('both verifiers reject %s', async (_, events) => expect(await verdictOn(events)).not.toBe('sound'));
