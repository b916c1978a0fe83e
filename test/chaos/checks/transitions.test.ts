import { expect, test } from 'vitest';
import type { LedgerEvent, RecordedEvent } from '../../../src/ledger/rules/event.ts';
import { quoteIssued, randomHex32 } from '../../support/events.ts';
import { eventExamples } from '../../ledger/rules/examples.ts';
import { transitionViolations } from './transitions.ts';

const recovered: LedgerEvent = { type: 'ledger_recovered', data: eventExamples.ledger_recovered };
const payer = `0x${'1'.repeat(40)}`;
const asset = `0x${'2'.repeat(40)}`;
const nonce = randomHex32();
const named = { network: 'eip155:84532', asset, payer, payment_nonce: nonce };
const transaction = randomHex32();

const started: LedgerEvent = {
  type: 'settlement_started',
  data: {
    request_id: crypto.randomUUID(),
    binding: randomHex32(),
    body_sha256: randomHex32(),
    body_bytes: 1,
    payment: {
      x402_version: 2,
      transfer_method: 'eip3009',
      network: 'eip155:84532',
      asset,
      symbol: 'USDC',
      decimals: 6,
      pay_to: payer,
      amount: '1',
      payer,
      nonce,
      valid_after: '0',
      valid_before: '1',
      signature: '0x',
      max_timeout_secs: 1,
      eip712_name: 'USD Coin',
      eip712_version: '2',
    },
  },
};
const settled: LedgerEvent = {
  type: 'payment_settled',
  data: { ...named, amount: '1', transaction, evidence: 'facilitator' },
};
const unknown: LedgerEvent = { type: 'settlement_unknown', data: { ...named, reason: 'timeout' } };
const failed: LedgerEvent = { type: 'settlement_failed', data: { ...named, reason: 'insufficient_funds' } };
const disproved = (call: 'withdrawn' | 'kept'): LedgerEvent => ({
  type: 'settlement_disproved',
  data: { ...named, transaction, reason: 'not_on_chain', call },
});
const enqueued: LedgerEvent = { type: 'enqueued', data: { call_id: 1, payment_nonce: nonce } };
const enqueuedAgain: LedgerEvent = { ...enqueued, type: 'enqueued_again' };
const delivered = (attempt: number): LedgerEvent => ({ type: 'delivered', data: { call_id: 1, attempt } });
const retried = (attempt: number): LedgerEvent => ({
  type: 'delivery_failed',
  data: { call_id: 1, attempt, reason: 'http_503' },
});
const completed = (attempt: number): LedgerEvent => ({ type: 'completed', data: { call_id: 1, attempt } });
const dead: LedgerEvent = { type: 'dead_lettered', data: { call_id: 1, attempt: 1, reason: 'refused' } };
const requeued: LedgerEvent = { type: 'operator_requeued', data: { call_id: 1 } };
const refundStarted: LedgerEvent = {
  type: 'refund_started',
  data: { ...eventExamples.refund_started, ...named },
};
const refundAbandoned: LedgerEvent = { type: 'refund_abandoned', data: eventExamples.refund_abandoned };
const refunded: LedgerEvent = { type: 'refunded', data: { ...eventExamples.refunded, ...named } };

const stream = `0x${'3'.repeat(64)}`;

function violationsOf(...events: LedgerEvent[]): string[] {
  let version = 0;
  const recorded = [quoteIssued(), ...events].map((event, index): RecordedEvent => {
    const place =
      event.type === 'ledger_recovered'
        ? { stream: 'recovery:2', version: 1 }
        : { stream, version: ++version };
    return { ...event, ...place, seq: index + 1, at: '' };
  });
  return [...transitionViolations(recorded)].map(({ words }) => words);
}

const paid = [started, settled, enqueued];

test.each([
  ['paid and done', [started, settled, enqueued, delivered(1), completed(1)]],
  ['found out later', [started, unknown, settled, enqueued, delivered(1), delivered(2), completed(2)]],
  ['landed late', [started, failed, settled, enqueued]],
  ['taken back in time', [started, settled, enqueued, disproved('withdrawn'), settled, enqueuedAgain]],
  [
    'taken back too late',
    [started, settled, enqueued, delivered(1), disproved('kept'), settled, completed(1)],
  ],
  [
    'taken back between two attempts',
    [started, settled, enqueued, delivered(1), retried(1), disproved('withdrawn'), settled, enqueuedAgain],
  ],
  [
    'taken back during an attempt',
    [started, settled, enqueued, delivered(1), disproved('kept'), retried(1), settled, delivered(2)],
  ],
  ['refunded', [...paid, dead, refundStarted, refunded]],
  ['queued again once its refund was given up', [...paid, dead, refundStarted, refundAbandoned, requeued]],
  ['completed by a runner whose delivery a restore lost', [...paid, recovered, completed(1)]],
  ['failed, delivered again and lost', [...paid, delivered(1), retried(1), recovered, completed(2)]],
])('%s is legal', (_, events) => {
  expect(violationsOf(...events)).toEqual([]);
});

test.each([
  ['enqueued before it is paid', [started, enqueued, settled], 'enqueued while the payment is settling'],
  ['settled twice', [started, settled, enqueued, settled], 'payment_settled while the payment is settled'],
  [
    'queued again during its refund',
    [...paid, dead, refundStarted, requeued],
    'operator_requeued while the refund is started',
  ],
  ['a refund of a call that waits', [...paid, refundStarted], 'refund_started while the call is enqueued'],
  [
    'refunded twice',
    [...paid, dead, refundStarted, refunded, refunded],
    'refunded while the refund is refunded',
  ],
  ['enqueued twice', [started, settled, enqueued, enqueued], 'enqueued of call 1'],
  ['unknown once it is settled', [started, settled, enqueued, unknown], 'settlement_unknown while'],
  ['started twice', [started, started], 'settlement_started while the payment is settling'],
  [
    'completed twice',
    [started, settled, enqueued, delivered(1), completed(1), completed(1)],
    'completed while call 1 is completed',
  ],
  [
    'completed by an older attempt',
    [started, settled, enqueued, delivered(2), completed(1)],
    'attempt 1 completed',
  ],
  ['completed without a delivery', [...paid, completed(1)], 'completed while call 1 is enqueued'],
  [
    'completed without a delivery after a recovery before it was paid',
    [started, recovered, settled, enqueued, completed(1)],
    'completed while call 1 is enqueued',
  ],
  [
    'completed by an attempt that no restore explains',
    [...paid, recovered, completed(2)],
    'attempt 2 completed',
  ],
  [
    'delivered twice as one attempt',
    [started, settled, enqueued, delivered(1), delivered(1)],
    'attempt 1 after',
  ],
  [
    'delivered again after it was taken back',
    [started, settled, enqueued, delivered(1), disproved('kept'), retried(1), delivered(2)],
    'attempt 2 although the payment is unknown',
  ],
])('%s is not', (_, events, fault) => {
  expect(violationsOf(...events).join()).toContain(fault);
});
