import { expect, test } from 'vitest';
import type { RecordedEvent } from '../../../src/ledger/rules/event.ts';
import { callbackBody, callEnd } from '../../../src/calls/rules/callback.ts';
import { foldQuote } from '../../../src/payments/rules/quote-state.ts';

const hex = (digit: string, bytes = 32): string => `0x${digit.repeat(bytes * 2)}`;
const binding = hex('b');
const payment = {
  amount: '1',
  network: 'eip155:1',
  asset: hex('a', 20),
  payer: hex('c', 20),
  nonce: hex('d'),
};
const named = { ...payment, nonce: undefined, payment_nonce: payment.nonce };
const transfer = { transaction: hex('e'), block_number: '1', block_hash: hex('f'), log_index: 0 };
const steps = {
  settlement_started: { binding, body_sha256: hex('0'), payment },
  settlement_failed: { ...named, reason: 'rejected' },
  payment_settled: { ...named, ...transfer, amount: '1', evidence: 'chain' },
  enqueued: { call_id: 7, payment_nonce: payment.nonce },
  delivered: { call_id: 7, attempt: 1 },
  completed: { call_id: 7, attempt: 1, result_sha256: hex('9'), result_bytes: 4 },
  dead_lettered: { call_id: 7, attempt: 1, reason: 'runner_refused' },
  operator_requeued: { call_id: 7 },
  settlement_confirmed: { ...named, ...transfer },
  refunded: { ...named, ...transfer, amount: '1', refunded_to: payment.payer },
} as const;

function eventsOf(...types: (keyof typeof steps)[]): RecordedEvent[] {
  return types.map((type, index) => ({
    stream: hex('1'),
    type,
    data: steps[type],
    version: index + 1,
    seq: 100 + index,
    at: `2026-01-01T00:00:0${index}.000000Z`,
  })) as unknown as RecordedEvent[];
}

const paid = ['settlement_started', 'payment_settled', 'enqueued'] as const;
const endOf = (...types: (keyof typeof steps)[]) =>
  callEnd(foldQuote(eventsOf(...types)), eventsOf(...types), binding);

test.each([
  [[...paid, 'delivered', 'completed'], 'completed', 104],
  // what comes later changes nothing of the message, nor its id
  [[...paid, 'delivered', 'completed', 'settlement_confirmed'], 'completed', 104],
  [[...paid, 'dead_lettered'], 'refund_due', 103],
  [['settlement_started', 'payment_settled'], 'refund_due', 101],
  [[...paid, 'dead_lettered', 'refunded'], 'refunded', 104],
  [[...paid, 'delivered', 'completed', 'refunded'], 'refunded', 105],
] as const)('the end of a call that went so: %j', (types, state, seq) => {
  expect(endOf(...types)).toMatchObject({ state, seq });
});

test.each([
  [['settlement_started']],
  [['settlement_started', 'settlement_failed']],
  [paid],
  [[...paid, 'delivered']],
  [[...paid, 'dead_lettered', 'operator_requeued']],
] as const)('there is no end, or nothing was charged: %j', (types) => {
  expect(endOf(...types)).toBeUndefined();
});

test('a callback of another request than the one that was paid has no end', () => {
  const events = eventsOf(...paid, 'completed');
  expect(callEnd(foldQuote(events), events, hex('2'))).toBeUndefined();
});

function messageOf(...types: (keyof typeof steps)[]): unknown {
  const events = eventsOf(...types);
  const state = foldQuote(events);
  const end = callEnd(state, events, binding);
  if (!end) throw new Error('there is no end');
  return JSON.parse(callbackBody(state, events, end, { digest: hex('1'), url: 'https://gateway.example/r' }));
}

test('a message says what ended, and has neither the result nor the payer', () => {
  expect(messageOf(...paid, 'delivered', 'completed')).toEqual({
    type: 'payment.completed',
    timestamp: '2026-01-01T00:00:04.000000Z',
    data: {
      seq: 104,
      quote_digest: hex('1'),
      receipt_url: 'https://gateway.example/r',
      call_id: 7,
      result_sha256: hex('9'),
      result_bytes: 4,
    },
  });
  expect(messageOf(...paid, 'dead_lettered', 'refunded')).toEqual({
    type: 'payment.refunded',
    timestamp: '2026-01-01T00:00:04.000000Z',
    data: {
      seq: 104,
      quote_digest: hex('1'),
      receipt_url: 'https://gateway.example/r',
      call_id: 7,
      refunds: [{ amount: '1', transaction: hex('e') }],
    },
  });
});
