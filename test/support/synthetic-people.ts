import type { LedgerEvent } from '../../src/ledger/rules/event.ts';
import { hex32Of, paidJob, type StreamEvent } from './synthetic-ledger.ts';

const uuidOf = (kind: number, n: number): string =>
  `00000000-0000-4000-8000-${kind}${String(n).padStart(11, '0')}`;
const eventOf = (stream: string, type: string, data: object): StreamEvent => ({
  stream,
  event: { type, data } as LedgerEvent,
});

/**
 * One customer from the first sign-in to the last: an account with credit, a key, three chats (one paid, one that failed, one
 * corrected), a spend on the chain, and a job that was paid to have more credit. 35 events, one of which
 * counts the sessions of others.
 */
export function customer(n: number): StreamEvent[] {
  const [userId, sessionId, keyId, accountId] = [uuidOf(1, n), uuidOf(2, n), n + 100, n + 1];
  const ofAccount = { account_id: accountId };
  const account = (type: string, data: object) =>
    eventOf(`account:${accountId}`, type, { ...ofAccount, ...data });
  const session = (type: string, data: object) =>
    eventOf(`session:${sessionId}`, type, { session_id: sessionId, user_id: userId, ...data });
  const key = (type: string, data: object = {}) => eventOf(`key:${keyId}`, type, { key_id: keyId, ...data });
  const bought = paidJob(900 + n, { creditMicros: '500' });
  return [
    ...bought,
    eventOf('requests', 'sessions_counted', { sessions: [{ method: 'wallet', count: 3, sign_ups: 2 }] }),
    account('credit_account_opened', { name: `user:${userId}` }),
    session('session_started', { method: 'password', expires_at: 1_800_000_000, is_sign_up: true }),
    account('credit_granted', { amount_micros: '1000' }),
    account('credit_topped_up', { amount_micros: '500', ...paymentOf(bought) }),
    key('key_created', ofAccount),
    ...chat(uuidOf(3, n), ofAccount, 300, 200, 0),
    ...failedChat(uuidOf(4, n), ofAccount),
    ...chat(uuidOf(5, n), ofAccount, 400, 400, 150),
    ...spend(uuidOf(6, n), n),
    account('credit_expired', { amount_micros: '50' }),
    key('key_revoked'),
    session('session_ended', { reason: 'ended' }),
  ];
}

/** Which payment bought it, as a top-up names it. */
function paymentOf([quote, , started, , enqueued]: readonly StreamEvent[]): object {
  if (started?.event.type !== 'settlement_started' || enqueued?.event.type !== 'enqueued')
    throw new Error('this job is not paid');
  const { network, asset, symbol, decimals, amount, payer } = started.event.data.payment;
  const { call_id } = enqueued.event.data;
  return { call_id, quote_digest: quote?.stream, network, asset, symbol, decimals, atoms: amount, payer };
}

function admitted(chatId: string, ofAccount: object, heldMicros: number, more: object = {}): StreamEvent[] {
  const stream = `chat:${chatId}`;
  const caller = { caller: 'api_key', key_id: 3, model: 'small', streaming: false, ...ofAccount, ...more };
  const held = { ...ofAccount, chat_id: chatId, amount_micros: String(heldMicros) };
  return [eventOf(stream, 'chat_admitted', caller), eventOf(stream, 'credit_held', held)];
}

function chat(
  chatId: string,
  ofAccount: object,
  heldMicros: number,
  costMicros: number,
  correctedMicros: number,
): StreamEvent[] {
  const stream = `chat:${chatId}`;
  const move = (type: string, micros: number, more: object = {}) =>
    eventOf(stream, type, { ...ofAccount, chat_id: chatId, amount_micros: String(micros), ...more });
  const completed = {
    ending: 'completed',
    model: 'small',
    prompt_tokens: 1,
    completion_tokens: 1,
    is_estimate: false,
    cost_micros: String(costMicros),
  };
  // of its two tokens the second one costs three quarters
  const quarterNanos = (costMicros / 4) * 1e9;
  const price = { input_nanos: String(quarterNanos), output_nanos: String(3 * quarterNanos) };
  return [
    ...admitted(chatId, ofAccount, heldMicros, { price }),
    eventOf(stream, 'chat_completed', completed),
    move('credit_captured', costMicros, { is_estimate: false }),
    ...(heldMicros > costMicros ? [move('credit_released', heldMicros - costMicros)] : []),
    ...(correctedMicros > 0 ? [move('credit_corrected', correctedMicros)] : []),
  ];
}

function failedChat(chatId: string, ofAccount: object): StreamEvent[] {
  const stream = `chat:${chatId}`;
  const released = { ...ofAccount, chat_id: chatId, amount_micros: '250' };
  return [
    ...admitted(chatId, ofAccount, 250),
    eventOf(stream, 'chat_failed', { reason: 'no_upstream', model: 'small' }),
    eventOf(stream, 'credit_released', released),
  ];
}

function spend(chatId: string, n: number): StreamEvent[] {
  const facts = {
    chat_id: chatId,
    network: 'eip155:84532',
    contract: `0x${'c0'.repeat(20)}`,
    commitment: hex32Of('commitment'),
    nonce: String(n),
    auth_hash: hex32Of(`auth ${n}`),
    operator: `0x${'0b'.repeat(20)}`,
    amount: '1000',
  };
  const landed = { transaction: hex32Of(`spend ${n}`), block_number: '7', block_hash: hex32Of('block 7') };
  const accepted = {
    service_id: '1',
    job_index: 0,
    expiry: '1800000000',
    signature: `0x${'a1'.repeat(65)}`,
    binding: hex32Of(`binding ${n}`),
    process_id: uuidOf(9, n),
  };
  const of = (type: string, more: object = {}) => eventOf(`spend:${chatId}`, type, { ...facts, ...more });
  const caller = { caller: 'spend_auth', model: 'small', streaming: false };
  return [
    eventOf(`chat:${chatId}`, 'chat_admitted', caller),
    of('spend_accepted', accepted),
    of('spend_authorized', landed),
    of('spend_earned'),
    of('spend_paid_out', landed),
  ];
}
