import { describe, expect, test } from 'vitest';
import type { LedgerEvent, RecordedEvent } from '../../../src/domain/events/event.ts';
import { paymentToData } from '../../../src/domain/payments/payment.ts';
import { optionJson } from '../../../src/domain/payments/quote.ts';
import {
  emptyQuoteState,
  evolve,
  foldQuote,
  isOpen,
  isPaid,
  paymentOf,
  receiptState,
  type QuoteState,
} from '../../../src/domain/payments/quote-state.ts';
import { signedPayment } from './payment-support.ts';
import { bytesOf, nowSecs, option, payer } from './support.ts';

const expiresAt = nowSecs + 300;
const firstNonce = bytesOf('d1', 32);
const secondNonce = bytesOf('d2', 32);
const transaction = bytesOf('f6', 32);
const named = { network: option.network, asset: option.asset };

const quoted: LedgerEvent = {
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
const verified: LedgerEvent = {
  type: 'payment_verified',
  data: { ...named, payment_nonce: firstNonce, payer, by: 'facilitator' },
};
const started = (nonce = firstNonce): LedgerEvent => ({
  type: 'settlement_started',
  data: {
    request_id: '0198a1b2-0000-7000-8000-000000000001',
    binding: bytesOf('01', 32),
    body_sha256: bytesOf('02', 32),
    body_bytes: 2,
    payment: paymentToData({ ...signedPayment, nonce }),
  },
});
const unknown = (nonce = firstNonce): LedgerEvent => ({
  type: 'settlement_unknown',
  data: { ...named, payment_nonce: nonce, payer, reason: 'timeout' },
});
const failed = (nonce = firstNonce): LedgerEvent => ({
  type: 'settlement_failed',
  data: { ...named, payment_nonce: nonce, payer, reason: 'insufficient_funds' },
});
const settled = (nonce = firstNonce): LedgerEvent => ({
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
const enqueued = enqueuedFor(firstNonce);
const ofFirst = { ...named, payment_nonce: firstNonce, payer };
const proof = { block_number: '12', block_hash: bytesOf('77', 32), log_index: 3 };
const confirmed: LedgerEvent = {
  type: 'settlement_confirmed',
  data: { ...ofFirst, transaction: bytesOf('f7', 32), ...proof },
};
const disproved = (call: 'withdrawn' | 'kept'): LedgerEvent => ({
  type: 'settlement_disproved',
  data: { ...ofFirst, transaction, reason: 'not_on_chain', call },
});
const reorged = (call: 'withdrawn' | 'kept'): LedgerEvent => ({
  type: 'settlement_reorged',
  data: { ...ofFirst, transaction, block_number: '12', block_hash: bytesOf('77', 32), call },
});
const delivered: LedgerEvent = { type: 'delivered', data: { call_id: 9, attempt: 1 } };
const retried: LedgerEvent = {
  type: 'delivery_failed',
  data: { call_id: 9, attempt: 1, reason: 'http_500' },
};
const completed: LedgerEvent = { type: 'completed', data: { call_id: 9, attempt: 2 } };
const dead: LedgerEvent = { type: 'dead_lettered', data: { call_id: 9, attempt: 1, reason: 'http_400' } };
const requeued: LedgerEvent = { type: 'operator_requeued', data: { call_id: 9 } };
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
const refunded = refundedFor(firstNonce);
const replayDenied: LedgerEvent = {
  type: 'replay_denied',
  data: { claim: 'payment', ...named, payment_nonce: secondNonce, payer },
};

const paid = [quoted, verified, started(), settled(), enqueued];

function recorded(events: readonly LedgerEvent[]): RecordedEvent[] {
  return events.map((event, index) => ({
    ...event,
    seq: index + 100,
    stream: bytesOf('e5', 32),
    version: index + 1,
    at: `2027-01-15T08:00:0${index % 10}.000Z`,
  }));
}

const storyOf = (events: readonly LedgerEvent[]): QuoteState => foldQuote(recorded(events));

const callOf = (events: readonly LedgerEvent[]) => storyOf(events).payments[0]?.call;

/** How a stream stands after these events: the receipt's word, whether it is paid, whether it can be paid. */
function standing(events: readonly LedgerEvent[], at = nowSecs) {
  const story = storyOf(events);
  return { state: receiptState(story, at), paid: isPaid(story), open: isOpen(story, at) };
}

describe('a quote', () => {
  test('is open until the second it expires in', () => {
    expect(standing([quoted])).toEqual({ state: 'quoted', paid: false, open: true });
    expect(standing([quoted], expiresAt - 1)).toEqual({ state: 'quoted', paid: false, open: true });
    expect(standing([quoted], expiresAt)).toEqual({ state: 'expired', paid: false, open: false });
  });

  test('that was never issued cannot be paid', () => {
    expect(isOpen(emptyQuoteState, 0)).toBe(false);
    expect(isPaid(emptyQuoteState)).toBe(false);
  });

  test('that a used payment names expires all the same', () => {
    expect(standing([quoted, replayDenied], expiresAt).open).toBe(false);
  });
});

describe('a payment being settled', () => {
  test('holds its quote, and nobody knows yet whether money moved', () => {
    const expected = { state: 'settling', paid: null, open: false };
    expect(standing([quoted, verified, started()])).toEqual(expected);
    expect(standing([quoted, verified, started()], expiresAt)).toEqual(expected);
  });

  test('of unknown outcome holds its quote and is not called unpaid, however late it is', () => {
    const expected = { state: 'settlement_unknown', paid: null, open: false };
    expect(standing([quoted, started(), unknown()])).toEqual(expected);
    expect(standing([quoted, started(), unknown()], expiresAt + 86_400)).toEqual(expected);
  });

  test('goes on when it is used again meanwhile', () => {
    const events = [quoted, started(), replayDenied];
    expect(standing(events)).toEqual({ state: 'settling', paid: null, open: false });
    expect(standing([...events, unknown()])).toMatchObject({ state: 'settlement_unknown', paid: null });
    expect(standing([...events, settled(), enqueued])).toMatchObject({ state: 'enqueued', paid: true });
  });

  test('of unknown outcome may turn out to be paid', () => {
    expect(standing([quoted, started(), unknown(), settled(), enqueued], expiresAt)).toEqual({
      state: 'enqueued',
      paid: true,
      open: false,
    });
  });

  test('of unknown outcome may turn out to be unpaid', () => {
    expect(standing([quoted, started(), unknown(), failed()])).toEqual({
      state: 'settlement_failed',
      paid: false,
      open: true,
    });
  });

  test('that failed frees its quote for another until it expires', () => {
    const events = [quoted, started(), failed()];
    expect(standing(events)).toEqual({ state: 'settlement_failed', paid: false, open: true });
    expect(standing(events, expiresAt)).toEqual({ state: 'settlement_failed', paid: false, open: false });
  });

  test('is settled as soon as the money moved, with or without its call', () => {
    expect(standing([quoted, started(), settled()])).toEqual({ state: 'settled', paid: true, open: false });
    expect(standing(paid)).toEqual({ state: 'enqueued', paid: true, open: false });
  });
});

describe('a second payment, after the first failed', () => {
  const second = [quoted, started(), failed(), started(secondNonce)];

  test('holds the quote again', () => {
    expect(standing(second)).toEqual({ state: 'settling', paid: null, open: false });
    expect(standing([...second, unknown(secondNonce)])).toEqual({
      state: 'settlement_unknown',
      paid: null,
      open: false,
    });
  });

  test('pays the quote', () => {
    expect(standing([...second, settled(secondNonce), enqueuedFor(secondNonce)])).toEqual({
      state: 'enqueued',
      paid: true,
      open: false,
    });
  });

  test('may fail too, and frees the quote again', () => {
    expect(standing([...second, failed(secondNonce)])).toEqual({
      state: 'settlement_failed',
      paid: false,
      open: true,
    });
  });

  test('leaves the first one as it was', () => {
    const story = storyOf([...second, settled(secondNonce)]);
    expect(paymentOf(story, { ...named, payer, nonce: firstNonce })).toMatchObject({
      status: 'settlement_failed',
      reason: 'insufficient_funds',
    });
    expect(paymentOf(story, { ...named, payer, nonce: secondNonce })).toMatchObject({
      status: 'settled',
      settled: { transaction },
    });
    expect(story.payments).toHaveLength(2);
  });

  test("is not moved by the first one's outcome, nor by one of another payer with its nonce", () => {
    const other = { ...named, payment_nonce: secondNonce, payer: bytesOf('ee', 20), reason: 'timeout' };
    const events: LedgerEvent[] = [...second, { type: 'settlement_failed', data: other }];
    expect(standing(events).state).toBe('settling');
    expect(standing([...second, failed()]).state).toBe('settling');
  });
});

describe('a payment that was believed to have failed and lands after another paid its quote', () => {
  const both = [
    quoted,
    started(),
    failed(),
    started(secondNonce),
    settled(secondNonce),
    enqueuedFor(secondNonce, 8),
    settled(),
    enqueued,
    delivered,
  ];

  test('has a call of its own, and the other keeps its own', () => {
    const calls = storyOf(both).payments.map(({ call }) => call);
    expect(calls).toEqual([
      { callId: 9, status: 'delivered' },
      { callId: 8, status: 'enqueued' },
    ]);
  });
});

describe('a refund', () => {
  test('is what the receipt says, and the payment stays paid', () => {
    const expected = { state: 'refunded', paid: true, open: false };
    expect(standing([...paid, dead, refunded])).toEqual(expected);
    expect(standing([quoted, started(), settled(), refunded])).toEqual(expected);
    expect(standing([...paid, delivered, completed, refunded])).toEqual(expected);
    expect(storyOf([...paid, dead, refunded]).payments[0]).toMatchObject({
      status: 'settled',
      refunded: { version: 7, transaction: bytesOf('f8', 32), proof: { logIndex: 3 } },
      call: { status: 'dead_lettered' },
    });
  });

  test('of the second of two payments leaves the first one as it was, and the other way round', () => {
    const both = [quoted, started(), failed(), started(secondNonce), settled(secondNonce)];
    const two = [...both, enqueuedFor(secondNonce, 8), settled(), enqueued];
    expect(standing([...two, refunded]).state).toBe('enqueued');
    expect(standing([...two, refundedFor(secondNonce), delivered]).state).toBe('delivered');
    expect(standing([...two, refunded, refundedFor(secondNonce)]).state).toBe('refunded');
  });
});

describe('a settlement that does not stand', () => {
  test('is open again with its call, where no runner had it', () => {
    const events = [...paid, disproved('withdrawn')];
    expect(standing(events)).toEqual({ state: 'settlement_unknown', paid: null, open: false });
    expect(storyOf(events).payments[0]).toMatchObject({ call: undefined, settled: undefined });
    expect(standing([...paid, reorged('withdrawn')])).toEqual({ state: 'settling', paid: null, open: false });
  });

  test('leaves its call with the runner that has it, and is not called paid', () => {
    const events = [...paid, delivered, disproved('kept'), completed];
    expect(standing(events)).toEqual({ state: 'settlement_unknown', paid: null, open: false });
    expect(storyOf(events).payments[0]?.call).toMatchObject({ callId: 9, status: 'completed' });
    expect(standing([...events, settled()])).toEqual({ state: 'completed', paid: true, open: false });
  });

  test('keeps the transaction that was named for it as a place to look', () => {
    expect(storyOf([...paid, disproved('withdrawn')]).payments[0]?.hints).toEqual([transaction]);
  });
});

test("a confirmation replaces the facilitator's report with the chain's proof", () => {
  expect(storyOf(paid).payments[0]?.settled).toEqual({
    version: 4,
    seq: 103,
    at: '2027-01-15T08:00:03.000Z',
    amount: '3264000',
    transaction,
    evidence: 'facilitator',
  });
  expect(storyOf([...paid, confirmed]).payments[0]?.settled).toEqual({
    version: 4,
    seq: 103,
    at: '2027-01-15T08:00:03.000Z',
    amount: '3264000',
    transaction: bytesOf('f7', 32),
    evidence: 'chain',
    proof: { blockNumber: 12n, blockHash: bytesOf('77', 32), logIndex: 3 },
  });
  expect(standing([...paid, confirmed])).toEqual({ state: 'enqueued', paid: true, open: false });
});

describe('a paid call', () => {
  test.each([
    ['is enqueued', [], 'enqueued'],
    ['is delivered', [delivered], 'delivered'],
    ['is completed', [delivered, completed], 'completed'],
    ['stays where it was when a delivery failed', [retried], 'enqueued'],
    ['is completed at a later attempt', [delivered, retried, delivered, completed], 'completed'],
    ['is dead-lettered', [delivered, retried, dead], 'dead_lettered'],
    ['is enqueued again by the operator', [dead, requeued], 'enqueued'],
    ['is completed after that', [dead, requeued, delivered, completed], 'completed'],
    ['is as it was when its payment is used again', [delivered, replayDenied], 'delivered'],
    ['is completed after its payment was used again', [replayDenied, completed], 'completed'],
  ] satisfies [string, LedgerEvent[], string][])('%s, and stays paid', (_, events, state) => {
    expect(standing([...paid, ...events])).toEqual({ state, paid: true, open: false });
    expect(standing([...paid, ...events], expiresAt)).toEqual({ state, paid: true, open: false });
  });

  test('keeps its id, and the attempt whose result counts', () => {
    expect(callOf([...paid, delivered])).toEqual({ callId: 9, status: 'delivered' });
    expect(callOf([...paid, delivered, completed])).toEqual({
      callId: 9,
      status: 'completed',
      attempt: 2,
    });
  });
});

describe('a story', () => {
  test('has the version of its last event', () => {
    expect(emptyQuoteState.version).toBe(0);
    expect(storyOf([quoted]).version).toBe(1);
    expect(storyOf([...paid, delivered, retried]).version).toBe(7);
  });

  const rejected: LedgerEvent = {
    type: 'payment_rejected',
    data: { service_id: 1, job_index: 0, stage: 'decode', reason: 'undecodable_payment' },
  };
  const bystanders: LedgerEvent[] = [
    verified,
    retried,
    rejected,
    { type: 'request_refused', data: { code: 'quote_in_use' } },
    { type: 'auth_passed', data: { caller: payer, mode: 'payer_is_caller' } },
    { type: 'enqueue_failed', data: { reason: 'outbox_full', service_id: 1, job_index: 0 } },
    { type: 'operator_runner_paused', data: { runner: 'echo', reason: 'http_410' } },
    { type: 'operator_runner_resumed', data: { runner: 'echo' } },
  ];
  test.each(bystanders)('is moved by $type in its version only', (event) => {
    for (const before of [[quoted], [quoted, started()], [...paid, delivered]]) {
      const story = storyOf(before);
      expect(storyOf([...before, event])).toEqual({ ...story, version: story.version + 1 });
    }
  });

  test('keeps what its payment paid for, and when that was started', () => {
    expect(storyOf([quoted, started()]).payments).toEqual([
      {
        binding: bytesOf('01', 32),
        bodySha256: bytesOf('02', 32),
        payment: paymentToData({ ...signedPayment, nonce: firstNonce }),
        startedAt: '2027-01-15T08:00:01.000Z',
        status: 'settling',
        hints: [],
        isOverdue: false,
      },
    ]);
  });

  test('can go on from any point: folding the rest onto it gives the same', () => {
    const events = recorded([
      quoted,
      replayDenied,
      started(),
      failed(),
      started(secondNonce),
      unknown(secondNonce),
      settled(secondNonce),
      enqueued,
      dead,
      requeued,
      delivered,
      completed,
    ]);
    for (const [at] of events.entries()) {
      const before = foldQuote(events.slice(0, at));
      const frozen = structuredClone(before);
      expect(events.slice(at).reduce(evolve, before)).toEqual(foldQuote(events));
      expect(before).toEqual(frozen);
    }
  });
});
