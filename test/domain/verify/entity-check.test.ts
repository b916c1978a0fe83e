import { expect, test } from 'vitest';
import type { LedgerEvent } from '../../../src/domain/events/event.ts';
import { LedgerCheck } from '../../../src/domain/verify/ledger-check.ts';
import { hex32Of, leavesOf, type StreamEvent } from '../../support/synthetic-ledger.ts';

const tell = (stream: string, type: string, data: object): StreamEvent => ({
  stream,
  event: { type, data } as LedgerEvent,
});

/** What is first wrong with a ledger that tells this, in words. */
function faultOf(told: readonly StreamEvent[]): string | undefined {
  const check = new LedgerCheck();
  for (const leaf of leavesOf(told, told.length)) {
    const fault = check.next(Buffer.from(leaf));
    if (fault) return fault.words;
  }
  return undefined;
}

const uuidOf = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
const account = (type: string, data: object = {}, id = 7): StreamEvent =>
  tell(`account:${id}`, type, { account_id: id, ...data });
const funded = [
  account('credit_account_opened', { name: 'somebody' }),
  account('credit_granted', { amount_micros: '100' }),
];

const chat = (n: number, type: string, data: object): StreamEvent => tell(`chat:${uuidOf(n)}`, type, data);
const admitted = (n = 1): StreamEvent =>
  chat(n, 'chat_admitted', { caller: 'api_key', key_id: 3, account_id: 7, model: 'small', streaming: false });
const moved = (type: string, micros: number, n = 1, of = n): StreamEvent => {
  const estimate = type === 'credit_captured' ? { is_estimate: false } : {};
  const data = { account_id: 7, chat_id: uuidOf(of), amount_micros: String(micros), ...estimate };
  return chat(n, type, data);
};
const completed = (n = 1): StreamEvent =>
  chat(n, 'chat_completed', {
    ending: 'completed',
    model: 'small',
    prompt_tokens: 1,
    completion_tokens: 1,
    is_estimate: false,
    cost_micros: '30',
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
  tell(`spend:${uuidOf(n)}`, type, { ...facts, chat_id: uuidOf(n), ...data });
const accepted = (n = 1): StreamEvent =>
  spend(
    'spend_accepted',
    {
      service_id: '1',
      job_index: 0,
      expiry: '1800000000',
      signature: `0x${'a1'.repeat(65)}`,
      binding: hex32Of('binding'),
      process_id: uuidOf(99),
    },
    n,
  );
const gaveUp = spend('spend_released', { reason: 'process_lost' });
const earned = spend('spend_earned');

const key = (type: string, data: object = {}): StreamEvent => tell('key:3', type, { key_id: 3, ...data });
const created = key('key_created', { account_id: 7 });
const user = tell(`user:${uuidOf(5)}`, 'user_created', { user_id: uuidOf(5) });
const session = (type: string, data: object): StreamEvent =>
  tell(`session:${uuidOf(6)}`, type, { session_id: uuidOf(6), user_id: uuidOf(5), ...data });
const started = session('session_started', { method: 'password', expires_at: 1 });
const ended = session('session_ended', { reason: 'ended' });

test.each<[string, StreamEvent[]]>([
  [
    'a completion that cost less than it held',
    [...held, completed(), moved('credit_captured', 30), moved('credit_released', 30)],
  ],
  ['a completion that failed', [...held, failed, moved('credit_released', 60)]],
  [
    'one that was charged in full, and corrected',
    [...held, completed(), moved('credit_captured', 60), moved('credit_corrected', 60)],
  ],
  ['a completion of the free tier', [admitted(), completed()]],
  ['a spend that was claimed', [accepted(), spend('spend_authorized'), earned, spend('spend_paid_out')]],
  [
    'a spend that landed behind its answer',
    [accepted(), earned, spend('spend_authorized'), spend('spend_paid_out')],
  ],
  ['a spend given up, and its nonce used again', [accepted(), gaveUp, accepted(2)]],
  ['a key, a person and a session', [created, key('key_revoked'), user, started, ended]],
  ['a key that ended before anybody told of it', [key('key_revoked'), created]],
])('%s is legal', (_, told) => {
  expect(faultOf(told)).toBeUndefined();
});

test.each<[string, StreamEvent[], RegExp]>([
  ['a completion that nobody admitted', [completed()], /has to come before it/],
  ['a completion with two ends', [admitted(), completed(), failed], /is completed, which cannot be followed/],
  [
    'a capture before the end',
    [...held, moved('credit_captured', 60)],
    /is admitted, which cannot be followed/,
  ],
  [
    'more than was held',
    [...held, completed(), moved('credit_captured', 60), moved('credit_released', 1)],
    /than was held for this chat/,
  ],
  [
    'the hold of another chat',
    [...held, admitted(2), moved('credit_held', 1, 2, 1)],
    /something else than its stream/,
  ],
  [
    'more held than an account has',
    [...funded, admitted(), moved('credit_held', 101)],
    /-1 micros available/,
  ],
  ['credit of an account that was never opened', funded.slice(1), /has to come before it/],
  [
    'more taken away than there is',
    [...funded, account('credit_expired', { amount_micros: '101' })],
    /-1 micros available/,
  ],
  ['a nonce that pays twice', [accepted(), accepted(2)], /one nonce pays once/],
  ['a spend that was given up and earned', [accepted(), gaveUp, earned], /is released, which cannot/],
  ['a claim of what was not earned', [accepted(), spend('spend_paid_out')], /is accepted, which cannot/],
  [
    'a spend that lands after it was given up',
    [accepted(), spend('spend_released', { reason: 'x' }), spend('spend_authorized')],
    /is released, which cannot/,
  ],
  ['another spend than was accepted', [accepted(), spend('spend_earned', { nonce: '5' })], /another spend/],
  ['a key that is made twice', [created, created], /is created, which cannot/],
  ['a session that ends twice', [started, ended, ended], /is ended, which cannot/],
  [
    'an event in a stream of another kind',
    [admitted(), { ...user, stream: admitted().stream }],
    /something else/,
  ],
  [
    'a payment in the stream of a chat',
    [admitted(), chat(1, 'enqueued', { call_id: 1, payment_nonce: hex32Of('n') })],
    /none of a quote/,
  ],
])('%s is illegal', (_, told, words) => {
  expect(faultOf(told)).toMatch(words);
});
