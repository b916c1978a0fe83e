import { expect, test } from 'vitest';
import type { LedgerEvent } from '../../../src/ledger/rules/event.ts';
import { grant, type Wish } from '../../../src/payments/rules/deliver-or-refund.ts';
import { decide, settlementState } from '../../../src/payments/rules/settlement.ts';
import { eventExamples } from '../../ledger/rules/examples.ts';
import { dead, firstNonce, paid, refunded, reorged, requeued, stateOf } from './quote-events.ts';
import { option, payer } from './support.ts';

const { network, asset, amount } = option;
const ofFirst = { network, asset, payer, payment_nonce: firstNonce };
const begun: LedgerEvent = {
  type: 'refund_started',
  data: { ...ofFirst, amount: String(amount), refund_to: payer, since_block: '7', operator: 'ada' },
};
const sent: LedgerEvent = { type: 'refund_sent', data: { ...eventExamples.refund_sent, ...ofFirst } };
const notSent: LedgerEvent = { type: 'refund_not_sent', data: { ...ofFirst, why: 'x', operator: 'ada' } };
const abandoned: LedgerEvent = {
  type: 'refund_abandoned',
  data: { ...ofFirst, proof: 'operators', operator: 'bob' },
};
const refundedInPart = { type: 'refunded', data: { ...refunded.data, amount: '1' } } as LedgerEvent;
const owed = [...paid, dead];

const say = (operator: string): Wish => ({ kind: 'say_not_sent', data: { why: 'not seen', operator } });
const record = (atoms: bigint, to: string, isGoodwill = false): Wish => ({
  kind: 'record_refund',
  amount: atoms,
  to,
  isGoodwill,
  shown: eventExamples.refunded,
});
const wishes = {
  requeue: { kind: 'requeue', data: { call_id: 9 } },
  redeliver: { kind: 'redeliver', data: eventExamples.redelivery_requested },
  start: { kind: 'start_refund', data: { operator: 'ada' } },
  note: { kind: 'note_sent', data: eventExamples.refund_sent },
  'ada says': say('Ada'),
  'bob says': say('bob'),
  abandon: {
    kind: 'abandon',
    data: { proof: 'nonce_spent', block_number: '9', block_hash: firstNonce, operator: 'ada' },
  },
  record: record(amount, payer),
  'record a part': record(1n, payer),
  'record elsewhere': record(amount, option.payTo),
  'record as goodwill': record(1n, payer, true),
} as const satisfies Record<string, Wish>;

/** What becomes of each wish: the types of its events, or why it is refused. */
function answersTo(events: readonly LedgerEvent[]): Record<string, string> {
  const { payment } = stateOf(events);
  if (!payment) throw new Error('no payment was started');
  return Object.fromEntries(
    Object.entries(wishes).map(([name, wish]) => {
      const granted = grant(payment, wish);
      return [
        name,
        granted.kind === 'record' ? granted.events.map(({ type }) => type).join() : `-${granted.why.kind}`,
      ];
    }),
  );
}

const nothingStarted = {
  note: '-not_started',
  'ada says': '-not_started',
  'bob says': '-not_started',
  abandon: '-not_started',
};
const nothingElse = {
  requeue: '-refund_under_way',
  redeliver: '-refund_under_way',
  start: '-refund_under_way',
  abandon: 'refund_abandoned',
  record: 'refunded',
  'record a part': '-refund_under_way',
  'record elsewhere': '-refund_under_way',
  'record as goodwill': '-refund_under_way',
};
const due = {
  ...nothingStarted,
  requeue: 'operator_requeued',
  redeliver: 'redelivery_requested',
  start: 'refund_started',
  record: 'refunded',
  'record a part': 'refunded',
  'record elsewhere': 'refunded',
  'record as goodwill': 'refunded',
};

test.each<[string, LedgerEvent[], Record<string, string>]>([
  ['a dead letter is delivered or refunded', owed, due],
  [
    'a started refund excludes delivery and any other refund',
    [...owed, begun],
    { ...nothingElse, note: 'refund_sent', 'ada says': 'refund_not_sent', 'bob says': 'refund_not_sent' },
  ],
  [
    'a second operator ends what the first one has said was not sent',
    [...owed, begun, notSent],
    { ...nothingElse, note: 'refund_sent', 'ada says': '-said_before', 'bob says': 'refund_abandoned' },
  ],
  [
    'a transaction takes back what was said, and the same one again changes nothing',
    [...owed, begun, notSent, sent],
    { ...nothingElse, note: '', 'ada says': 'refund_not_sent', 'bob says': 'refund_not_sent' },
  ],
  [
    'a started refund of a payment that was taken back ends as any other, and nothing else is begun',
    [...owed, begun, reorged('kept')],
    {
      ...nothingElse,
      requeue: '-unpaid',
      redeliver: '-unpaid',
      start: '-unpaid',
      note: 'refund_sent',
      'ada says': 'refund_not_sent',
      'bob says': 'refund_not_sent',
    },
  ],
  ['a refund that was given up leaves it as it was', [...owed, begun, abandoned], due],
  [
    'a refund that is recorded leaves nothing',
    [...owed, begun, refunded],
    {
      ...nothingStarted,
      requeue: '-refunded',
      redeliver: '-refunded',
      start: '-refunded',
      record: '-refunded',
      'record a part': '-refunded',
      'record elsewhere': '-refunded',
      'record as goodwill': '-refunded',
    },
  ],
  [
    'a call in the queue is refunded only in goodwill',
    [...owed, requeued],
    {
      ...due,
      start: '-call_open',
      record: '-call_open',
      'record a part': '-call_open',
      'record elsewhere': '-call_open',
    },
  ],
])('%s', (_, events, answers) => {
  expect(answersTo(events)).toEqual(answers);
});

test('a payment that is taken back and settles again gets no call where a part of it was refunded', () => {
  const taken = stateOf([...paid, refundedInPart, reorged('withdrawn')]).payment!;
  const settled = { kind: 'settled', transaction: firstNonce, proof: undefined } as const;
  expect(decide(settlementState(taken, { callId: 9, attempt: 0 }), settled)).toMatchObject({
    events: [{ type: 'payment_settled' }],
    call: { kind: 'remove', callId: 9 },
  });
});
