import type { LedgerEvent, RecordedEvent } from '../../../src/ledger/rules/event.ts';
import { paymentToData } from '../../../src/payments/rules/payment.ts';
import { optionJson } from '../../../src/payments/rules/quote.ts';
import {
  foldQuote,
  isOpen,
  isPaid,
  receiptState,
  type QuoteState,
} from '../../../src/payments/rules/quote-state.ts';
import { signedPayment } from './payment-support.ts';
import { bytesOf, nowSecs, option, payer } from './support.ts';

/** The events of one quote and its payments, for the tests of their state. */
export const expiresAt = nowSecs + 300;
export const firstNonce = bytesOf('d1', 32);
export const secondNonce = bytesOf('d2', 32);
export const transaction = bytesOf('f6', 32);
const named = { network: option.network, asset: option.asset };

export const quoted: LedgerEvent = {
  type: 'quote_issued',
  data: {
    service_id: 1,
    job_index: 0,
    price_wei: '1000000000000000',
    options: [optionJson(option)],
    requester: bytesOf('00', 20),
    inputs_hash: bytesOf('00', 32),
    issued_at: nowSecs,
    expires_at: expiresAt,
    salt: bytesOf('5a', 32),
  },
};
export const verified: LedgerEvent = {
  type: 'payment_verified',
  data: { ...named, payment_nonce: firstNonce, payer, by: 'facilitator' },
};
export const started = (nonce = firstNonce): LedgerEvent => ({
  type: 'settlement_started',
  data: {
    request_id: '0198a1b2-0000-7000-8000-000000000001',
    binding: bytesOf('01', 32),
    body_sha256: bytesOf('02', 32),
    body_bytes: 2,
    payment: paymentToData({ ...signedPayment, nonce }),
  },
});
export const unknown = (nonce = firstNonce): LedgerEvent => ({
  type: 'settlement_unknown',
  data: { ...named, payment_nonce: nonce, payer, reason: 'timeout' },
});
export const failed = (nonce = firstNonce): LedgerEvent => ({
  type: 'settlement_failed',
  data: { ...named, payment_nonce: nonce, payer, reason: 'insufficient_funds' },
});
export const settled = (nonce = firstNonce): LedgerEvent => ({
  type: 'payment_settled',
  data: {
    ...named,
    payment_nonce: nonce,
    payer,
    amount: String(option.amount),
    transaction,
    evidence: 'facilitator',
  },
});
const enqueuedFor = (nonce: string, callId = 9): LedgerEvent => ({
  type: 'enqueued',
  data: { call_id: callId, payment_nonce: nonce },
});
export const enqueued = enqueuedFor(firstNonce);
const ofFirst = { ...named, payment_nonce: firstNonce, payer };
const proof = { block_number: '12', block_hash: bytesOf('77', 32), log_index: 3 };
export const confirmed: LedgerEvent = {
  type: 'settlement_confirmed',
  data: { ...ofFirst, transaction: bytesOf('f7', 32), ...proof },
};
export const disproved = (call: 'withdrawn' | 'kept'): LedgerEvent => ({
  type: 'settlement_disproved',
  data: { ...ofFirst, transaction, reason: 'not_on_chain', call },
});
export const reorged = (call: 'withdrawn' | 'kept'): LedgerEvent => ({
  type: 'settlement_reorged',
  data: { ...ofFirst, transaction, block_number: '12', block_hash: bytesOf('77', 32), call },
});
export const delivered: LedgerEvent = { type: 'delivered', data: { call_id: 9, attempt: 1 } };
export const retried: LedgerEvent = {
  type: 'delivery_failed',
  data: { call_id: 9, attempt: 1, reason: 'http_500' },
};
export const completed: LedgerEvent = { type: 'completed', data: { call_id: 9, attempt: 2 } };
export const dead: LedgerEvent = {
  type: 'dead_lettered',
  data: { call_id: 9, attempt: 1, reason: 'http_400' },
};
export const requeued: LedgerEvent = { type: 'operator_requeued', data: { call_id: 9 } };
const refundedFor = (nonce: string): LedgerEvent => ({
  type: 'refunded',
  data: {
    ...named,
    payer,
    payment_nonce: nonce,
    amount: String(option.amount),
    refunded_from: option.payTo,
    refunded_to: payer,
    transaction: bytesOf('f8', 32),
    ...proof,
    operator: 'ada',
  },
});
export const refunded = refundedFor(firstNonce);
export const replayDenied: LedgerEvent = {
  type: 'payment_replay_denied',
  data: { claim: 'payment', ...named, payment_nonce: secondNonce, payer },
};

export const paid = [quoted, verified, started(), settled(), enqueued];

export function recorded(events: readonly LedgerEvent[]): RecordedEvent[] {
  return events.map((event, index) => ({
    ...event,
    seq: index + 100,
    stream: bytesOf('e5', 32),
    version: index + 1,
    at: `2027-01-15T08:00:0${index % 10}.000Z`,
  }));
}

export const stateOf = (events: readonly LedgerEvent[]): QuoteState => foldQuote(recorded(events));

export const callOf = (events: readonly LedgerEvent[]) => stateOf(events).payment?.call;

/** The state after these events: the receipt's state, whether it is paid, whether it can be paid. */
export function summaryOf(events: readonly LedgerEvent[], at = nowSecs) {
  const quoteState = stateOf(events);
  return { state: receiptState(quoteState, at), paid: isPaid(quoteState), open: isOpen(quoteState, at) };
}
