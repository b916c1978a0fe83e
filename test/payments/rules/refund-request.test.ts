import { expect, test } from 'vitest';
import type { LedgerEvent } from '../../../src/ledger/rules/event.ts';
import { failureOf, grant, type Wish } from '../../../src/payments/rules/deliver-or-refund.ts';
import { refundReason, refundRequestState } from '../../../src/payments/rules/refund.ts';
import {
  completed,
  dead,
  delivered,
  disproved,
  failed,
  firstNonce,
  paid,
  quoted,
  refunded,
  reorged,
  requeued,
  retried,
  settled,
  started,
  stateOf,
  verified,
} from './quote-events.ts';
import { bytesOf, option, payer } from './support.ts';

const ofFirst = { network: option.network, asset: option.asset, payer, payment_nonce: firstNonce };
const [reason, otherReason] = [bytesOf('4e', 32), bytesOf('4f', 32)];
const requested: LedgerEvent = {
  type: 'refund_requested',
  data: { ...ofFirst, reason_sha256: reason, signature: '0x51' },
};
const granted: LedgerEvent = { type: 'refund_request_granted', data: { ...ofFirst, operator: 'ada' } };
const declined: LedgerEvent = {
  type: 'refund_request_declined',
  data: { ...ofFirst, why: 'no', operator: 'ada' },
};
const answered = (status: number): LedgerEvent => ({
  type: 'completed',
  data: { call_id: 9, attempt: 1, http_status: status },
});
const left: LedgerEvent = {
  type: 'delivery_failed',
  data: { call_id: 9, attempt: 1, reason: 'client_left' },
};
const begun: LedgerEvent = {
  type: 'refund_started',
  data: { ...ofFirst, amount: String(option.amount), refund_to: payer, operator: 'ada' },
};

/** What becomes of each wish, and what is said of the payment. */
function after(events: readonly LedgerEvent[]) {
  const { payment } = stateOf(events);
  if (!payment) throw new Error('no payment was started');
  const failure = failureOf(events);
  const request = (sha: string): Wish => ({
    kind: 'request_refund',
    data: { reason_sha256: sha, signature: '0x51' },
    failure,
  });
  const answerTo = (wish: Wish): string => {
    const answer = grant(payment, wish);
    return answer.kind === 'refused'
      ? `-${answer.why.kind}`
      : answer.events.map(({ type }) => type).join(' ') || 'nothing new';
  };
  return {
    ask: answerTo(request(reason)),
    'ask otherwise': answerTo(request(otherReason)),
    grant: answerTo({ kind: 'grant_request', operator: 'ada', attempt: 2 }),
    decline: answerTo({ kind: 'decline_request', operator: 'ada', why: 'no' }),
    'send it': answerTo({ kind: 'start_refund', data: { operator: 'ada' } }),
    state: refundRequestState(payment) ?? 'not asked',
    due: refundReason(payment) ?? 'nothing',
  };
}

const refuses = (why: string) => ({ ask: `-${why}`, 'ask otherwise': `-${why}` });
const takes = { ask: 'refund_requested', 'ask otherwise': 'refund_requested' };
const has = { ask: 'nothing new', 'ask otherwise': '-requested_before' };
const decides = { grant: 'refund_request_granted', decline: 'refund_request_declined' };
const gives = { ...decides, grant: 'dead_lettered operator_discarded refund_request_granted' };
const noDecision = (why: string) => ({ grant: `-${why}`, decline: `-${why}` });
const notAsked = { ...noDecision('not_requested'), state: 'not asked' };
const over = noDecision('not_requested');

test.each<[string, LedgerEvent[], ReturnType<typeof after>]>([
  [
    'no refund of a call is asked for before an attempt has failed',
    [...paid, delivered],
    { ...refuses('call_open'), ...notAsked, 'send it': '-call_open', due: 'nothing' },
  ],
  [
    'the refund of a call may be asked for once an attempt has failed',
    [...paid, delivered, retried],
    { ...takes, ...notAsked, 'send it': '-call_open', due: 'nothing' },
  ],
  [
    'a client that leaves in the middle of its answer cannot ask for the money, whatever failed before',
    [...paid, delivered, retried, left],
    { ...refuses('call_open'), ...notAsked, 'send it': '-call_open', due: 'nothing' },
  ],
  [
    'one that is granted gives the call up, and one that is declined leaves it',
    [...paid, delivered, retried, requested],
    { ...has, ...gives, 'send it': '-call_open', state: 'open', due: 'nothing' },
  ],
  [
    'a declined one ends, and the call may still be delivered',
    [...paid, delivered, retried, requested, declined],
    { ...has, ...over, 'send it': '-call_open', state: 'declined', due: 'nothing' },
  ],
  [
    'a declined one takes no refund away that is due later',
    [...paid, delivered, retried, requested, declined, dead],
    { ...has, ...over, 'send it': 'refund_started', state: 'declined', due: 'dead_lettered' },
  ],
  [
    'a dead letter is refunded without a decision, asked for or not',
    [...paid, dead],
    { ...takes, ...notAsked, 'send it': 'refund_started', due: 'dead_lettered' },
  ],
  [
    'what is asked for of a dead letter says why, and needs no decision',
    [...paid, dead, requested],
    { ...has, ...noDecision('refund_due'), 'send it': 'refund_started', state: 'due', due: 'dead_lettered' },
  ],
  [
    'a dead letter that is sent again leaves the request open until it has ended',
    [...paid, dead, requested, requeued],
    { ...has, ...gives, 'send it': '-call_open', state: 'open', due: 'nothing' },
  ],
  [
    'a call that is delivered after the request ends it',
    [...paid, dead, requested, requeued, completed],
    {
      ...refuses('requested_before'),
      ask: 'nothing new',
      ...over,
      'send it': '-delivered',
      state: 'delivered',
      due: 'nothing',
    },
  ],
  [
    'no refund of a delivered call is asked for',
    [...paid, retried, completed],
    { ...refuses('delivered'), ...notAsked, 'send it': '-delivered', due: 'nothing' },
  ],
  [
    'no refund of an answer of 200 is asked for',
    [...paid, answered(200)],
    { ...refuses('delivered'), ...notAsked, 'send it': '-delivered', due: 'nothing' },
  ],
  [
    'the refund of an answer of 400 and above may be asked for',
    [...paid, answered(400)],
    { ...takes, ...notAsked, 'send it': '-delivered', due: 'nothing' },
  ],
  [
    'such a request is granted or declined, and until then no refund is sent',
    [...paid, answered(404), requested],
    { ...has, ...decides, 'send it': '-delivered', state: 'open', due: 'nothing' },
  ],
  [
    'a granted one is due although the answer was delivered',
    [...paid, answered(404), requested, granted],
    { ...has, ...over, 'send it': 'refund_started', state: 'granted', due: 'granted' },
  ],
  [
    'an answer that failed after an earlier request may be the reason of a new one',
    [...paid, retried, requested, answered(404)],
    { ...takes, ...over, 'send it': '-delivered', state: 'delivered', due: 'nothing' },
  ],
  [
    'a grant is void where the call was delivered all the same',
    [...paid, dead, requested, granted, requeued, completed],
    { ...has, ...over, 'send it': '-delivered', state: 'delivered', due: 'nothing' },
  ],
  [
    'a refund that is being sent may be asked for',
    [...paid, dead, begun],
    { ...takes, ...notAsked, 'send it': '-refund_under_way', due: 'dead_lettered' },
  ],
  [
    'a refunded payment is not refunded again',
    [...paid, dead, refunded],
    { ...refuses('refunded'), ...notAsked, 'send it': '-refunded', due: 'nothing' },
  ],
  [
    'a refund ends the request',
    [...paid, dead, requested, refunded],
    { ...has, ...noDecision('refunded'), 'send it': '-refunded', state: 'refunded', due: 'nothing' },
  ],
  [
    'while a payment is taken back nothing is asked for or decided',
    [...paid, answered(404), reorged('kept')],
    {
      ...refuses('unpaid'),
      ...noDecision('unpaid'),
      state: 'not asked',
      'send it': '-unpaid',
      due: 'nothing',
    },
  ],
  [
    'a request is nobody’s to decide while its payment is taken back',
    [...paid, answered(404), requested, reorged('kept')],
    { ...has, ...noDecision('unpaid'), state: 'not asked', 'send it': '-unpaid', due: 'nothing' },
  ],
  [
    'a request waits for a decision again once its payment is settled again',
    [...paid, answered(404), requested, reorged('kept'), settled()],
    { ...has, ...decides, state: 'open', 'send it': '-delivered', due: 'nothing' },
  ],
  [
    'a grant says of no payment that never was that its refund is due',
    [...paid, answered(404), requested, granted, disproved('kept'), failed()],
    { ...has, ...noDecision('unpaid'), state: 'not asked', 'send it': '-unpaid', due: 'nothing' },
  ],
  [
    'a payment without a call is owed back, asked for or not',
    [quoted, verified, started(), settled()],
    { ...takes, ...notAsked, 'send it': 'refund_started', due: 'never_enqueued' },
  ],
])('%s', (_, events, expected) => {
  expect(after(events)).toEqual(expected);
});
