import { describe, expect, test } from 'vitest';
import type { LedgerEvent } from '../../../src/ledger/rules/event.ts';
import { paymentToData } from '../../../src/payments/rules/payment.ts';
import {
  emptyQuoteState,
  evolve,
  foldQuote,
  isOpen,
  isPaid,
} from '../../../src/payments/rules/quote-state.ts';
import { signedPayment } from './payment-support.ts';
import { bytesOf, payer } from './support.ts';
import {
  expiresAt,
  firstNonce,
  secondNonce,
  transaction,
  quoted,
  verified,
  started,
  unknown,
  failed,
  settled,
  enqueued,
  confirmed,
  disproved,
  reorged,
  delivered,
  retried,
  completed,
  dead,
  requeued,
  refunded,
  replayDenied,
  paid,
  recorded,
  stateOf,
  callOf,
  summaryOf,
} from './quote-events.ts';

describe('a quote', () => {
  test('is open until the second it expires in', () => {
    expect(summaryOf([quoted])).toEqual({ state: 'quoted', paid: false, open: true });
    expect(summaryOf([quoted], expiresAt - 1)).toEqual({ state: 'quoted', paid: false, open: true });
    expect(summaryOf([quoted], expiresAt)).toEqual({ state: 'expired', paid: false, open: false });
  });

  test('that was never issued cannot be paid', () => {
    expect(isOpen(emptyQuoteState, 0)).toBe(false);
    expect(isPaid(emptyQuoteState)).toBe(false);
  });

  test('for which a replay was denied still expires', () => {
    expect(summaryOf([quoted, replayDenied], expiresAt).open).toBe(false);
  });
});

describe('a payment being settled', () => {
  test('holds its quote, and it is unknown whether money moved', () => {
    const expected = { state: 'settling', paid: null, open: false };
    expect(summaryOf([quoted, verified, started()])).toEqual(expected);
    expect(summaryOf([quoted, verified, started()], expiresAt)).toEqual(expected);
  });

  test('whose upstream is asked is asked no longer than its authorization is valid, whatever a wrong clock has recorded', () => {
    const begun = started();
    if (begun.type !== 'settlement_started') throw new Error('not a start');
    const validBefore = Number(begun.data.payment.valid_before);
    const endOf = (endsAt: number) => {
      const asked: LedgerEvent = { ...begun, data: { ...begun.data, upstream: { ends_at: endsAt } } };
      return stateOf([quoted, asked]).payment?.upstream?.endsAt;
    };
    expect(endOf(validBefore + 7_200)).toBe(validBefore);
    expect(endOf(validBefore - 30)).toBe(validBefore - 30);
  });

  test('of unknown outcome holds its quote and is not called unpaid, however late it is', () => {
    const expected = { state: 'settlement_unknown', paid: null, open: false };
    expect(summaryOf([quoted, started(), unknown()])).toEqual(expected);
    expect(summaryOf([quoted, started(), unknown()], expiresAt + 86_400)).toEqual(expected);
  });

  test('continues when a replay of it is denied', () => {
    const events = [quoted, started(), replayDenied];
    expect(summaryOf(events)).toEqual({ state: 'settling', paid: null, open: false });
    expect(summaryOf([...events, unknown()])).toMatchObject({ state: 'settlement_unknown', paid: null });
    expect(summaryOf([...events, settled(), enqueued])).toMatchObject({ state: 'enqueued', paid: true });
  });

  test('of unknown outcome may turn out to be paid', () => {
    expect(summaryOf([quoted, started(), unknown(), settled(), enqueued], expiresAt)).toEqual({
      state: 'enqueued',
      paid: true,
      open: false,
    });
  });

  test('of unknown outcome may turn out to be unpaid', () => {
    expect(summaryOf([quoted, started(), unknown(), failed()])).toEqual({
      state: 'settlement_failed',
      paid: false,
      open: false,
    });
  });

  test('that failed ends its quote: no other payment can take it', () => {
    const events = [quoted, started(), failed()];
    expect(summaryOf(events)).toEqual({ state: 'settlement_failed', paid: false, open: false });
    expect(summaryOf(events, expiresAt)).toEqual({ state: 'settlement_failed', paid: false, open: false });
  });

  test('is settled as soon as the money moved, with or without its call', () => {
    expect(summaryOf([quoted, started(), settled()])).toEqual({ state: 'settled', paid: true, open: false });
    expect(summaryOf(paid)).toEqual({ state: 'enqueued', paid: true, open: false });
  });
});

describe('a refund', () => {
  test('is shown on the receipt, and the payment stays paid', () => {
    const expected = { state: 'refunded', paid: true, open: false };
    expect(summaryOf([...paid, dead, refunded])).toEqual(expected);
    expect(summaryOf([quoted, started(), settled(), refunded])).toEqual(expected);
    expect(summaryOf([...paid, delivered, completed, refunded])).toEqual(expected);
    expect(stateOf([...paid, dead, refunded]).payment).toMatchObject({
      status: 'settled',
      isRefunded: true,
      refunds: [{ version: 7, transaction: bytesOf('f8', 32), proof: { logIndex: 3 } }],
      call: { status: 'dead_lettered' },
    });
  });
});

describe('a settlement that was disproved or reorged out', () => {
  test('is open again and loses its call, if no runner had the call', () => {
    const events = [...paid, disproved('withdrawn')];
    expect(summaryOf(events)).toEqual({ state: 'settlement_unknown', paid: null, open: false });
    expect(stateOf(events).payment).toMatchObject({ call: undefined, settled: undefined });
    expect(summaryOf([...paid, reorged('withdrawn')])).toEqual({
      state: 'settlement_unknown',
      paid: null,
      open: false,
    });
  });

  test('keeps its call if a runner has it, and is not reported as paid', () => {
    const events = [...paid, delivered, disproved('kept'), completed];
    expect(summaryOf(events)).toEqual({ state: 'settlement_unknown', paid: null, open: false });
    expect(stateOf(events).payment?.call).toMatchObject({ callId: 9, status: 'completed' });
    expect(summaryOf([...events, settled()])).toEqual({ state: 'completed', paid: true, open: false });
  });

  test('keeps the reported transaction as a hint', () => {
    expect(stateOf([...paid, disproved('withdrawn')]).payment?.hints).toEqual([transaction]);
  });
});

test("a confirmation replaces the facilitator's report with the chain's proof", () => {
  expect(stateOf(paid).payment?.settled).toEqual({
    version: 4,
    seq: 103,
    at: '2027-01-15T08:00:03.000Z',
    amount: '3264000',
    transaction,
    evidence: 'facilitator',
  });
  expect(stateOf([...paid, confirmed]).payment?.settled).toEqual({
    version: 4,
    seq: 103,
    at: '2027-01-15T08:00:03.000Z',
    amount: '3264000',
    transaction: bytesOf('f7', 32),
    evidence: 'chain',
    proof: { blockNumber: 12n, blockHash: bytesOf('77', 32), logIndex: 3 },
  });
  expect(summaryOf([...paid, confirmed])).toEqual({ state: 'enqueued', paid: true, open: false });
});

describe('a paid call', () => {
  test.each([
    ['is enqueued', [], 'enqueued'],
    ['is delivered', [delivered], 'delivered'],
    ['is completed', [delivered, completed], 'completed'],
    ['stays enqueued when a delivery failed', [retried], 'enqueued'],
    ['is completed at a later attempt', [delivered, retried, delivered, completed], 'completed'],
    ['is dead-lettered', [delivered, retried, dead], 'dead_lettered'],
    ['is enqueued again by the operator', [dead, requeued], 'enqueued'],
    ['is completed after the operator requeued it', [dead, requeued, delivered, completed], 'completed'],
    ['stays delivered when a replay of its payment is denied', [delivered, replayDenied], 'delivered'],
    ['is completed after a replay of its payment was denied', [replayDenied, completed], 'completed'],
  ] satisfies [string, LedgerEvent[], string][])('%s, and stays paid', (_, events, state) => {
    expect(summaryOf([...paid, ...events])).toEqual({ state, paid: true, open: false });
    expect(summaryOf([...paid, ...events], expiresAt)).toEqual({ state, paid: true, open: false });
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

describe('the state of a quote', () => {
  test('has the version of its last event', () => {
    expect(emptyQuoteState.version).toBe(0);
    expect(stateOf([quoted]).version).toBe(1);
    expect(stateOf([...paid, delivered, retried]).version).toBe(7);
  });

  const rejected: LedgerEvent = {
    type: 'payment_rejected',
    data: { service_id: 1, job_index: 0, stage: 'decode', reason: 'undecodable_payment' },
  };
  const otherEvents: LedgerEvent[] = [
    verified,
    retried,
    rejected,
    { type: 'request_refused', data: { code: 'quote_in_use' } },
    { type: 'auth_passed', data: { caller: payer, mode: 'payer_is_caller' } },
    { type: 'enqueue_failed', data: { reason: 'outbox_full', service_id: 1, job_index: 0 } },
    { type: 'operator_runner_paused', data: { runner: 'echo', reason: 'http_410' } },
    { type: 'operator_runner_resumed', data: { runner: 'echo' } },
  ];
  test.each(otherEvents)('changes only in its version on $type', (event) => {
    for (const before of [[quoted], [quoted, started()], [...paid, delivered]]) {
      const quoteState = stateOf(before);
      expect(stateOf([...before, event])).toEqual({ ...quoteState, version: quoteState.version + 1 });
    }
  });

  test('keeps the binding of its payment and the time at which settling started', () => {
    expect(stateOf([quoted, started()]).payment).toEqual({
      binding: bytesOf('01', 32),
      bodySha256: bytesOf('02', 32),
      payment: paymentToData({ ...signedPayment, nonce: firstNonce }),
      startedAt: '2027-01-15T08:00:01.000Z',
      status: 'settling',
      hints: [],
      isOverdue: false,
      refunds: [],
      isRefunded: false,
    });
  });

  test('is the same when the events are folded in two parts', () => {
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
