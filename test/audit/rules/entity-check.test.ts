import { expect, test } from 'vitest';
import type { LedgerEvent } from '../../../src/ledger/rules/event.ts';
import { hex32Of, type StreamEvent } from '../../support/synthetic-ledger.ts';
import { customer } from '../../support/synthetic-people.ts';
import { eventExamples } from '../../ledger/rules/examples.ts';
import { verdictOn } from '../../support/verify.ts';

const streamEvent = (stream: string, type: string, data: object): StreamEvent => ({
  stream,
  event: { type, data } as LedgerEvent,
});

const uuidOf = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
const account = (type: string, data: object = {}, id = 7): StreamEvent =>
  streamEvent(`account:${id}`, type, { account_id: id, ...data });
const funded = [
  account('credit_account_opened', { name: 'ada' }),
  account('credit_granted', { amount_micros: '100' }),
];

const chat = (n: number, type: string, data: object): StreamEvent =>
  streamEvent(`chat:${uuidOf(n)}`, type, data);
const admitted = (n = 1, more: object = {}): StreamEvent =>
  chat(n, 'chat_admitted', {
    caller: 'api_key',
    key_id: 3,
    account_id: 7,
    model: 'small',
    streaming: false,
    ...more,
  });
const price = {
  input_nanos: '10000000000',
  output_nanos: '20000000001',
  cached_input_nanos: '1000000000',
  cache_write_nanos: '12000000000',
};
const ofCache = { prompt_tokens: 10, cached_tokens: 4, cache_write_tokens: 3 };
const moved = (type: string, micros: number, n = 1, of = n): StreamEvent => {
  const estimate = type === 'credit_captured' ? { is_estimate: false } : {};
  const data = { account_id: 7, chat_id: uuidOf(of), amount_micros: String(micros), ...estimate };
  return chat(n, type, data);
};
const completed = (n = 1, more: object = {}): StreamEvent =>
  chat(n, 'chat_completed', {
    ending: 'completed',
    model: 'small',
    prompt_tokens: 1,
    completion_tokens: 1,
    is_estimate: false,
    cost_micros: '30',
    ...more,
  });
const refusedChat = chat(1, 'chat_refused', {
  caller: 'api_key',
  key_id: 3,
  account_id: 7,
  code: 'insufficient_funds',
  model: 'small',
});
const failed = chat(1, 'chat_failed', { reason: 'no_upstream', model: 'small' });
const held = [...funded, admitted(), moved('credit_held', 60)];

const facts = {
  network: 'eip155:84532',
  contract: `0x${'c0'.repeat(20)}`,
  commitment: hex32Of('commitment'),
  nonce: '4',
  auth_hash: hex32Of('auth'),
  operator: `0x${'0b'.repeat(20)}`,
  amount: '1000',
};
const spend = (type: string, data: object = {}, n = 1): StreamEvent =>
  streamEvent(`spend:${uuidOf(n)}`, type, { ...facts, chat_id: uuidOf(n), ...data });
const accepted = (n = 1, binding = 'binding'): StreamEvent =>
  spend(
    'spend_accepted',
    {
      service_id: '1',
      job_index: 0,
      expiry: '1800000000',
      signature: `0x${'a1'.repeat(65)}`,
      binding: hex32Of(binding),
      process_id: uuidOf(99),
    },
    n,
  );
const released = spend('spend_released', { reason: 'process_lost' });
const bound = spend('spend_released', { reason: 'upstream_busy', may_have_landed: true });
const earned = spend('spend_earned');

const key = (type: string, data: object = {}): StreamEvent =>
  streamEvent('key:3', type, { key_id: 3, ...data });
const created = key('key_created', { account_id: 7 });
const userStep = (type: string): StreamEvent =>
  streamEvent(`user:${uuidOf(5)}`, type, { user_id: uuidOf(5), operator: 'grace' });
const session = (type: string, data: object): StreamEvent =>
  streamEvent(`session:${uuidOf(6)}`, type, { session_id: uuidOf(6), user_id: uuidOf(5), ...data });
const started = session('session_started', { method: 'password', expires_at: 1 });
const ended = session('session_ended', { reason: 'ended' });

test.each<[string, StreamEvent[]]>([
  ['two customers with credit, chats, spends and sessions', [...customer(0), ...customer(1)]],
  [
    'a completion that cost less than it held',
    [...held, completed(), moved('credit_captured', 30), moved('credit_released', 30)],
  ],
  ['a completion that failed', [...held, failed, moved('credit_released', 60)]],
  [
    'a completion that was charged in full and corrected',
    [...held, completed(), moved('credit_captured', 60), moved('credit_corrected', 60)],
  ],
  ['a completion of the free tier', [admitted(), completed()]],
  [
    'a completion that costs what its tokens do, rounded up, also of the cache',
    [admitted(1, { price }), completed(1, { ...ofCache, cost_micros: String(3 * 10 + 4 + 3 * 12 + 20 + 1) })],
  ],
  [
    'a completion that was recovered with its hold, and then reported with its cost',
    [
      admitted(1, { price }),
      completed(1, { ending: 'recovered', prompt_tokens: 0, completion_tokens: 0, cost_micros: '60' }),
      completed(1, { cost_micros: '31' }),
    ],
  ],
  [
    'a completion whose upstream reported more tokens than any price could be paid for',
    [
      admitted(1, { price }),
      completed(1, { prompt_tokens: Number.MAX_SAFE_INTEGER, cost_micros: String(10n ** 16n - 1n) }),
    ],
  ],
  ['a spend that was paid out', [accepted(), spend('spend_authorized'), earned, spend('spend_paid_out')]],
  [
    'a spend that landed after its answer',
    [accepted(), earned, spend('spend_authorized'), spend('spend_paid_out')],
  ],
  ['a released spend that pays for another request', [accepted(), released, accepted(2, 'another')]],
  ['a spend that landed and pays for its request later', [accepted(), bound, accepted(2)]],
  ['a key and a session', [created, key('key_revoked'), started, ended]],
  ['a user who was disabled and erased', [userStep('user_disabled'), userStep('user_erased')]],
  [
    'a user who was enabled again',
    [userStep('user_disabled'), userStep('user_enabled'), userStep('user_disabled')],
  ],
  ['a key whose revocation is recorded before its creation', [key('key_revoked'), created]],
])('both verifiers accept %s', async (_, events) => expect(await verdictOn(events)).toBe('sound'));

test.each<[string, StreamEvent[], RegExp]>([
  [
    'an erased user who is enabled again',
    [userStep('user_disabled'), userStep('user_erased'), userStep('user_enabled')],
    /is erased, which cannot be followed/,
  ],
  [
    'a completion that costs less than its tokens',
    [admitted(1, { price }), completed(1, { cost_micros: '30' })],
    /its cost does not follow from its tokens and the price of its admission/,
  ],
  [
    'a completion whose prompt came from the cache more than once',
    [admitted(1, { price }), completed(1, { cached_tokens: 2 })],
    /more of its prompt came from the cache than it has/,
  ],
  ['a completion without an admission', [completed()], /must come before it is missing/],
  [
    'a chat that completes and then fails',
    [admitted(), completed(), failed],
    /is completed, which cannot be followed/,
  ],
  [
    'a capture before the completion',
    [...held, moved('credit_captured', 60)],
    /is admitted, which cannot be followed/,
  ],
  [
    'a capture and release of more than was held',
    [...held, completed(), moved('credit_captured', 60), moved('credit_released', 1)],
    /than was held for this chat/,
  ],
  [
    'a hold that names another chat than its stream',
    [...held, admitted(2), moved('credit_held', 1, 2, 1)],
    /do not match the entity of its stream/,
  ],
  [
    'a hold of more credit than the account has',
    [...funded, admitted(), moved('credit_held', 101)],
    /-1 micros available/,
  ],
  ['credit for an account that was never opened', funded.slice(1), /must come before it is missing/],
  [
    'an expiry of more credit than the account has',
    [...funded, account('credit_expired', { amount_micros: '101' })],
    /-1 micros available/,
  ],
  [
    'a completion that is charged to another account',
    [
      ...held,
      account('credit_account_opened', { name: 'bob' }, 8),
      completed(),
      chat(1, 'credit_captured', { ...moved('credit_captured', 60).event.data, account_id: 8 }),
    ],
    /account 8 has -60 micros held/,
  ],
  [
    'a correction of more than was captured',
    [...held, completed(), moved('credit_captured', 60), moved('credit_corrected', 61)],
    /more credit is returned than was captured/,
  ],
  ['a hold of a completion that was refused', [...funded, refusedChat, moved('credit_held', 60)], /./],
  [
    'a session that ends in the stream of another',
    [
      started,
      {
        ...ended,
        event: { ...ended.event, data: { ...ended.event.data, session_id: uuidOf(7) } } as LedgerEvent,
      },
    ],
    /do not match the entity of its stream/,
  ],
  ['two spends with the same nonce', [accepted(), accepted(2)], /one nonce pays once/],
  [
    'a landed spend that pays for another request',
    [accepted(), bound, accepted(2, 'another')],
    /bound to another/,
  ],
  [
    'a spend that is freed by the release of another completion of its request',
    [accepted(), bound, accepted(2), spend('spend_released', { reason: 'x' }, 2), accepted(3, 'another')],
    /bound to another/,
  ],
  [
    'a landed spend that is released from its request',
    [accepted(), spend('spend_authorized'), released],
    /it stays bound to its request/,
  ],
  ['a released spend that is earned', [accepted(), released, earned], /is released, which cannot/],
  [
    'a payout of a spend that was not earned',
    [accepted(), spend('spend_paid_out')],
    /is accepted, which cannot/,
  ],
  [
    'a spend that lands after it was released',
    [accepted(), spend('spend_released', { reason: 'x' }), spend('spend_authorized')],
    /is released, which cannot/,
  ],
  [
    'an earned spend that differs from the accepted one',
    [accepted(), spend('spend_earned', { nonce: '5' })],
    /a spend other than the accepted one/,
  ],
  ['a key that is created twice', [created, created], /is created, which cannot/],
  ['a session that ends twice', [started, ended, ended], /is ended, which cannot/],
  [
    'a user event in the stream of a chat',
    [admitted(), { ...userStep('user_disabled'), stream: admitted().stream }],
    /do not match the entity of its stream/,
  ],
  [
    'a payment event in the stream of a chat',
    [admitted(), chat(1, 'enqueued', { call_id: 1, payment_nonce: hex32Of('n') })],
    /not the stream of a quote/,
  ],
])('both verifiers reject %s', async (_, events, words) => expect(await verdictOn(events)).toMatch(words));

const invoice = (number: number, series = '2026', stream = `invoice:${series}`): StreamEvent =>
  streamEvent(stream, 'operator_invoice_issued', {
    ...eventExamples.operator_invoice_issued,
    series,
    number,
  });

test.each([
  ['two series, each from 1 on', [invoice(1), invoice(1, 'B'), invoice(2)], 'sound'],
  ['a number that is left out', [invoice(1), invoice(3)], 'its number is 3, not 2'],
  ['a number that repeats', [invoice(1), invoice(1)], 'its number is 1, not 2'],
  ['a series that begins later', [invoice(2)], 'its number is 2, not 1'],
  [
    'an invoice in the stream of another series',
    [invoice(1, 'A', 'invoice:B')],
    'its data do not match the entity of its stream',
  ],
])('invoices have every number of their series, in order: %s', async (_, events, words) => {
  expect(await verdictOn(events)).toContain(words);
});
