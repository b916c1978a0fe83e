import { describe, expect, test } from 'vitest';
import { ZodError } from 'zod';
import {
  decodeLeaf,
  encodeEventData,
  type EventData,
  eventDescriptors,
  type EventType,
  type LedgerEvent,
} from '../../../src/ledger/rules/event.ts';
import { bytesOf } from '../../payments/rules/support.ts';
import { digest, eventExamples as examples, job, ofPayment } from './examples.ts';

const optionalKeys: { readonly [T in EventType]?: readonly (keyof EventData<T>)[] } = {
  operator_acted: ['subject'],
  database_continued: ['anchored_size'],
  spend_authorized: ['transaction', 'block_number', 'block_hash'],
  spend_paid_out: ['transaction', 'block_number', 'block_hash'],
  payment_rejected: ['quote_digest', 'payer'],
  request_refused: ['service_id', 'job_index', 'quote_digest'],
  auth_passed: ['caller_nonce_sha256'],
  operator_token_created: ['accounts'],
  payment_replay_denied: ['quote_digest', 'asset'],
  nonce_replay_denied: ['used_by_quote'],
  payment_settled: ['block_number', 'block_hash', 'block_time', 'log_index'],
  settlement_unknown: ['transaction'],
  settlement_confirmed: ['block_time'],
  chat_admitted: ['key_id', 'account_id', 'price'],
  chat_refused: ['key_id', 'account_id', 'model'],
  chat_completed: ['upstream', 'uncovered_micros', 'first_byte_ms', 'latency_ms', 'reason'],
  chat_failed: ['upstream'],
  credit_granted: ['token_id', 'operator', 'why'],
  credit_expired: ['token_id', 'operator', 'why'],
  credit_held: ['key_id'],
  quote_issued: ['summarised'],
  credit_captured: ['key_id'],
  credit_released: ['key_id'],
  credit_corrected: ['key_id'],
  key_created: ['token_id'],
  key_revoked: ['token_id'],
  session_started: ['provider'],
  sign_in_refused: ['provider'],
  rate_changed: ['previous_rate', 'rate'],
  operator_config_loaded: ['changes', 'more_changes'],
  operator_requeued: ['operator', 'token_id'],
  operator_settlement_resolved: ['transaction'],
  payment_recovered: ['block_time', 'generation', 'refused'],
  operator_transfer_recorded: ['returned'],
  operator_period_closed: ['despite'],
  refund_started: ['sender', 'sender_nonce', 'since_block', 'evidence'],
  refund_sent: ['sender', 'sender_nonce'],
  refund_abandoned: ['block_number', 'block_hash', 'why'],
  transaction_cost_recorded: ['l1_fee_wei', 'operator'],
  operator_cost_reversed: ['l1_fee_wei'],
  operator_break_explained: ['transaction', 'log_index', 'quote_digest'],
  redelivery_requested: ['quote_digest'],
  ledger_recovered: [
    'origin',
    'new_origin',
    'anchored_size',
    'anchored_root',
    'lost_from',
    'lost_to',
    'why',
    'database',
  ],
  enqueue_failed: ['quote_digest'],
  call_triggered: ['log'],
  delivery_failed: ['retry_at'],
  completed: ['result_sha256', 'result_bytes', 'http_status', 'head_sha256'],
  settlement_started: ['payment_id', 'upstream', 'approval'],
  auth_denied: ['caller', 'quote_digest'],
  dry_run_allowed: ['mode', 'caller', 'code'],
  dry_run_denied: ['mode', 'caller', 'code'],
  dry_run_error: ['mode', 'caller', 'code'],
};

const types = Object.keys(examples) as EventType[];
const eventOf = (type: EventType, data: object): LedgerEvent => ({ type, data }) as LedgerEvent;
const encodes = (type: EventType, data: object) => () => encodeEventData(eventOf(type, data));

function without(data: object, lacking: string): object {
  return Object.fromEntries(Object.entries(data).filter(([key]) => key !== lacking));
}

function isOptional({ type, key }: { type: EventType; key: string }): boolean {
  return ((optionalKeys[type] ?? []) as readonly string[]).includes(key);
}

/** A leaf as the lane writes it. */
function leafOf(type: string, data: string, change: object = {}): Buffer {
  const envelope = {
    at: '2027-01-15T08:00:00.000Z',
    data: JSON.parse(data) as unknown,
    lane: 1,
    schema: 1,
    seq: 7,
    stream: digest,
    type,
    version: 3,
  };
  return Buffer.from(JSON.stringify({ ...envelope, ...change }));
}

describe('every event', () => {
  test('has a schema and an example', () => {
    expect(types.toSorted()).toEqual(Object.keys(eventDescriptors).toSorted());
  });

  test.each(types)('%s is read back unchanged', (type) => {
    const data = encodeEventData(eventOf(type, examples[type]));
    expect(decodeLeaf(leafOf(type, data))).toEqual({
      seq: 7,
      stream: digest,
      version: 3,
      at: '2027-01-15T08:00:00.000Z',
      type,
      data: examples[type],
    });
  });

  const fields = types.flatMap((type) => Object.keys(examples[type]).map((key) => ({ type, key })));

  test.each(fields.filter((field) => !isOptional(field)))('$type needs its $key', ({ type, key }) => {
    expect(encodes(type, without(examples[type], key))).toThrow(`"${key}"`);
  });

  test.each(fields.filter(isOptional))('$type may lack its $key', ({ type, key }) => {
    const lacking = without(examples[type], key);
    expect(decodeLeaf(leafOf(type, encodes(type, lacking)()))).toMatchObject({ type });
  });

  test.each(types)('%s has only the fields of its schema', (type) => {
    expect(encodes(type, { ...examples[type], surplus: 'unknown text' })).toThrow('surplus');
  });

  test.each(types)('%s is refused on reading where writing would refuse it', (type) => {
    const data = JSON.stringify({ ...examples[type], surplus: 'unknown text' });
    expect(() => decodeLeaf(leafOf(type, data))).toThrow('surplus');
  });
});

describe('the data of an event', () => {
  test('is canonical: the same bytes whatever order it was put together in', () => {
    const turned = Object.fromEntries(Object.entries(examples.payment_settled).toReversed());
    expect(encodes('payment_settled', turned)()).toBe(encodes('payment_settled', examples.payment_settled)());
    expect(encodes('delivered', { call_id: 1, attempt: 2 })()).toBe('{"attempt":2,"call_id":1}');
  });

  const settled = examples.payment_settled;
  const quoted = examples.quote_issued;
  const closed = examples.operator_period_closed;
  test.each([
    ['an upper-case address', 'auth_passed', { caller: `0x${'C3'.repeat(20)}`, mode: 'payer_is_caller' }],
    ['an address of 19 bytes', 'auth_passed', { caller: bytesOf('c3', 19), mode: 'payer_is_caller' }],
    ['a hash of 31 bytes', 'payment_settled', { ...settled, transaction: bytesOf('f6', 31) }],
    ['an amount in hex', 'payment_settled', { ...settled, amount: '0x10' }],
    ['an amount with a leading zero', 'payment_settled', { ...settled, amount: '010' }],
    ['a negative amount', 'payment_settled', { ...settled, amount: '-1' }],
    ['an amount that is a number', 'payment_settled', { ...settled, amount: 1 }],
    ['an amount of 79 digits', 'payment_settled', { ...settled, amount: '9'.repeat(79) }],
    ['a network by name', 'payment_settled', { ...settled, network: 'base' }],
    ['an unknown kind of evidence', 'payment_settled', { ...settled, evidence: 'client' }],
    ['no options', 'quote_issued', { ...quoted, options: [] }],
    ['an id beyond 2^53', 'quote_issued', { ...quoted, service_id: 2 ** 53 }],
    ['a negative id', 'quote_issued', { ...quoted, job_index: -1 }],
    ['a time with a fraction', 'quote_issued', { ...quoted, issued_at: 1.5 }],
    ['a sentence as reason', 'settlement_failed', { ...ofPayment, reason: 'Not enough money' }],
    ['a reason in upper case', 'settlement_failed', { ...ofPayment, reason: 'TIMEOUT' }],
    ['an empty reason', 'settlement_failed', { ...ofPayment, reason: '' }],
    ['a reason of 101 characters', 'settlement_failed', { ...ofPayment, reason: 'a'.repeat(101) }],
    ['a reason with a line break', 'settlement_failed', { ...ofPayment, reason: 'timeout\n' }],
    ['an unknown stage', 'payment_rejected', { ...job, stage: 'later', reason: 'late' }],
    ['an unknown claim', 'payment_replay_denied', { ...ofPayment, claim: 'transfer' }],
    ['a runner with a slash', 'operator_runner_resumed', { runner: '../echo' }],
    [
      'a close at the head of an empty log',
      'operator_period_closed',
      { ...closed, head: { ...closed.head, size: 0 } },
    ],
    ['nothing at all', 'delivered', {}],
  ] satisfies [string, EventType, object][])('is refused with %s', (_, type, data) => {
    expect(encodes(type, data)).toThrow(ZodError);
  });

  const started = examples.settlement_started;
  test.each([
    ['half a byte of signature', { signature: '0x123' }],
    ['an upper-case signature', { signature: `0x${'1B'.repeat(65)}` }],
    ['a time in hex', { valid_before: '0x10' }],
    ['version 3', { x402_version: 3 }],
    ['another transfer method', { transfer_method: 'approve' }],
    ['a symbol with markup', { symbol: '<b>' }],
    ['a name with a control character', { eip712_name: 'USD\u0000Coin' }],
    ['a field beside those of its schema', { resource: 'http://127.0.0.1' }],
  ] satisfies [string, object][])('is refused with a payment of %s', (_, change) => {
    const data = { ...started, payment: { ...started.payment, ...change } };
    expect(encodes('settlement_started', data)).toThrow(ZodError);
  });
});

describe('a leaf', () => {
  const data = '{"attempt":1,"call_id":1}';

  test.each([
    ['an unknown type', leafOf('job_done', data), 'unknown event type job_done at seq 7'],
    ['a type that every object has', leafOf('toString', data), 'unknown event type'],
    ['the type of another event', leafOf('enqueued', data), '"payment_nonce"'],
    ['a newer schema', leafOf('delivered', data, { schema: 2 }), '"schema"'],
    ['no schema', leafOf('delivered', data, { schema: undefined }), '"schema"'],
    ['no seq', leafOf('delivered', data, { seq: 0 }), '"seq"'],
    ['a seq beyond 2^53', leafOf('delivered', data, { seq: 2 ** 53 }), '"seq"'],
    ['no version', leafOf('delivered', data, { version: 0 }), '"version"'],
    ['no stream', leafOf('delivered', data, { stream: undefined }), '"stream"'],
    ['no time', leafOf('delivered', data, { at: undefined }), '"at"'],
    ['a list as data', leafOf('delivered', '[]'), '"data"'],
    ['text that is not a JSON', Buffer.from('delivered'), 'JSON'],
    ['nothing', Buffer.alloc(0), 'JSON'],
  ])('with %s is refused', (_, leaf, message) => {
    expect(() => decodeLeaf(leaf)).toThrow(message);
  });
});
