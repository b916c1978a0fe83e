import { expect, test } from 'vitest';
import { sha256 } from '../../../src/base/values/sha256.ts';
import type { LedgerEvent, RecordedEvent } from '../../../src/ledger/rules/event.ts';
import { bindingHash } from '../../../src/payments/rules/payment.ts';
import { eventExamples } from '../../ledger/rules/examples.ts';
import { type Attempt, createRecords, paymentKey, type Presentation, type RouteCall } from '../records.ts';
import { recordedPayments } from './payments.ts';
import { routeViolations } from './routes.ts';
import type { Landed } from './transfers.ts';

const stream = `0x${'5'.repeat(64)}`;
const started = eventExamples.settlement_started;
const { asset, payer, nonce } = started.payment;
const key = paymentKey(asset, payer, nonce);
const named = { network: started.payment.network, asset, payer, payment_nonce: nonce };
const request = { method: 'GET', path: '/files/v1-00-100', body: '' };
const bodySha256 = sha256(request.body);
const binding = bindingHash({ ...request, bodySha256, caller: undefined, callerNonce: undefined });
const given = { status: 200, sha256: sha256('an answer'), prices: [], isPricedLast: false };
const stored = {
  http_status: 200,
  head_sha256: sha256('head'),
  result_sha256: given.sha256,
  result_bytes: 9,
};

const start: LedgerEvent = {
  type: 'settlement_started',
  data: { ...started, binding, body_sha256: bodySha256, upstream: { ends_at: 1 } },
};
const answered: LedgerEvent = { type: 'upstream_answered', data: { ...named, attempt: 1, ...stored } };
const completed: LedgerEvent = { type: 'completed', data: { call_id: 1, attempt: 1, ...stored } };
const call: RouteCall = {
  method: 'GET',
  path: request.path,
  bodySha256,
  stream,
  callId: 1,
  attempt: 1,
  idempotencyKey: 'one',
  askedAt: 1_000,
  endedAt: 1_100,
  answer: given,
};
const attempt: Attempt = {
  gateway: '',
  sentAt: 900,
  endedAt: 1_200,
  status: 200,
  answer: { isCharged: true, sha256: given.sha256 },
};
const paid = { key, asset, payer, to: payer, nonce, transaction: '0x', logIndex: 0, amount: 1n };

interface Seen {
  readonly events?: readonly LedgerEvent[];
  readonly calls?: readonly RouteCall[];
  readonly attempts?: readonly Attempt[];
  readonly path?: string;
  readonly transfers?: readonly Landed[];
}

/** What is found in a ledger of one payment whose upstream answers first. */
function kindsOf(seen: Seen = {}): string[] {
  const { calls = [call], attempts = [attempt], path = request.path, transfers = [paid] } = seen;
  const { events = [start, answered, completed] } = seen;
  const recorded = events.map((event, index) => ({
    ...event,
    stream,
    seq: index + 1,
    version: index + 1,
    at: '',
  }));
  const records = createRecords();
  const signed = { key, asset, payer, nonce } as Presentation['signed'];
  const of = { scenario: 'v1', version: 2, ...request, path, signed } as const;
  records.presentations.push({ ...of, attempts: [...attempts], end: 'accepted' });
  records.routeCalls.push(...calls);
  records.settles.set(nonce, 1_150);
  const facts = { records, transfers, events: recorded as unknown as RecordedEvent[] };
  const payments = recordedPayments(facts.events);
  const rest = { payments, quietSince: Infinity, believesLies: false, isClockMoved: false };
  return [...routeViolations({ ...facts, ...rest })].map(({ kind }) => kind);
}

test('an answer that is paid, stored and given once breaks nothing', () => {
  expect(kindsOf()).toEqual([]);
});

const again = { ...call, askedAt: 1_050 };
const repeated: LedgerEvent = { type: 'upstream_repeated', data: { ...named, attempt: 2, ends_at: 2 } };
const saying = (code: string): Attempt => ({ ...attempt, status: 410, code, answer: undefined });
const passedOn: LedgerEvent = {
  type: 'upstream_answered',
  data: { ...answered.data, http_status: 404 },
};

test.each<[string, string, Seen]>([
  ['an answer without a transfer', 'answer_not_paid', { transfers: [] }],
  [
    'an answer that does not say that it is charged',
    'answer_not_paid',
    { attempts: [{ ...attempt, answer: { isCharged: false, sha256: given.sha256 } }] },
  ],
  [
    'an answer that the upstream did not give',
    'wrong_answer',
    { attempts: [{ ...attempt, answer: { isCharged: true, sha256: sha256('another') } }] },
  ],
  [
    'a second answer to one payment',
    'wrong_answer',
    {
      attempts: [attempt, { ...attempt, answer: { isCharged: true, sha256: sha256('another') } }],
      calls: [call, { ...call, askedAt: 9_000, answer: { ...given, sha256: sha256('another') } }],
    },
  ],
  ['an attempt that is not on record', 'asked_twice', { calls: [call, { ...call, askedAt: 5_000 }] }],
  ['two requests at a time', 'asked_twice', { calls: [call, again], events: [start, repeated, answered] }],
  ['a settlement before the answer', 'settled_unanswered', { events: [start, completed] }],
  ['a settlement for a 404', 'settled_unanswered', { events: [start, passedOn] }],
  ['a refund that is not due', 'answer_lost', { attempts: [saying('refund_due')] }],
  ['a stored answer that is not kept', 'answer_lost', { attempts: [saying('answer_not_kept')] }],
])('%s is a violation', (_what, kind, seen) => {
  expect(kindsOf(seen)).toContain(kind);
});

test('an answer on a path that was not paid for is a violation', () => {
  expect(kindsOf({ path: '/files/v1-00-200' })).toEqual(['accepted_for_another_request', 'wrong_work']);
});

test('an attempt on record may ask again once the first one has ended', () => {
  const calls = [call, { ...call, askedAt: 9_000 }];
  expect(kindsOf({ calls, events: [start, repeated, answered, completed] })).toEqual([]);
});
