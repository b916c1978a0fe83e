import { expect, test } from 'vitest';
import type { LedgerEvent } from '../../../src/ledger/rules/event.ts';
import type { SignedPaymentData } from '../../../src/ledger/rules/payment-events.ts';
import { recordedDigest } from '../../../src/payments/rules/quote.ts';
import {
  hex32Of,
  paidJob,
  payerKeyOf,
  refundOf,
  signTerms,
  type StreamEvent,
} from '../../support/synthetic-ledger.ts';
import { verdictOn } from '../../support/verify.ts';

const submitter = `0x${'fa'.repeat(20)}`;
const other = `0x${'0b'.repeat(20)}`;
const signed = '2000';
const used = '500';
const byUpto = { transfer_method: 'upto', submitter } as const;

type Data = Readonly<Record<string, unknown>>;

/** The events of a route's payment by `upto`: 2000 atoms were signed, and its answer has used 500. */
function uptoJob(n: number, change: { readonly nonce?: `0x${string}`; readonly payment?: object } = {}) {
  const [quoted, verified, started, settled, enqueued, , completed] = paidJob(n, {
    job: 1,
    ...(change.nonce === undefined ? {} : { nonce: change.nonce }),
  }).map(({ event }) => event);
  if (quoted?.type !== 'quote_issued' || started?.type !== 'settlement_started' || !settled || !completed)
    throw new Error('no payment');
  const options = quoted.data.options.map((option) =>
    typeof option === 'string' ? option : { ...option, ...byUpto },
  );
  const quote = { ...quoted.data, options };
  const stream = recordedDigest(quote);
  const { signature: _, ...terms } = { ...started.data.payment, ...byUpto, ...change.payment };
  const payment: SignedPaymentData = { ...terms, signature: signTerms(payerKeyOf(n), terms) };
  const event = (type: string, data: Data): StreamEvent => ({ stream, event: { type, data } as LedgerEvent });
  const { amount: __, ...place } = settled.data as Data;
  const { network, asset, payer, payment_nonce } = place;
  const named = { network, asset, payer, payment_nonce };
  const result = { result_sha256: hex32Of(`result ${n}`), result_bytes: 12 };
  const answered = { attempt: 1, http_status: 200, head_sha256: hex32Of('head'), ...result };
  const { transaction, block_number, block_hash } = place;
  return {
    begun: [
      event('quote_issued', quote),
      event('payment_verified', verified?.data as Data),
      event('settlement_started', { ...started.data, payment, upstream: { ends_at: 1_900_000_000 } }),
    ],
    answered: (change_: object = { used }) =>
      event('upstream_answered', { ...named, ...answered, ...change_ }),
    settled: (amount = used, change_: object = {}) =>
      event('payment_settled', { ...place, amount, ...change_ }),
    failed: event('settlement_failed', { ...named, reason: 'nothing_used' }),
    reorged: event('settlement_reorged', {
      ...named,
      transaction,
      block_number,
      block_hash,
      call: 'withdrawn',
    }),
    enqueued: event('enqueued', enqueued?.data as Data),
    enqueuedAgain: event('enqueued_again', enqueued?.data as Data),
    completed: event('completed', { call_id: (completed.data as Data)['call_id'], ...result, attempt: 1 }),
  };
}

const job = uptoJob(1);
const { begun, answered, settled, failed, reorged, enqueued, enqueuedAgain, completed } = job;
const refunded = (amount: string, change: object = {}): StreamEvent =>
  refundOf([settled(amount)], 0, { amount, ...change });
const nonce = hex32Of('one nonce');

test.each<[string, StreamEvent[]]>([
  ['a payment of what its answer has used', [...begun, answered(), settled(), enqueued, completed]],
  [
    'a payment of all that was signed',
    [...begun, answered({ used: signed }), settled(signed), enqueued, completed],
  ],
  ['a payment of less than its answer has used', [...begun, answered(), settled('1'), enqueued, completed]],
  ['a refund of a payment of more, as a whole', [...begun, answered(), settled('501'), refunded('501')]],
  ['a payment that has used nothing, and fails', [...begun, failed]],
  ['a refund of a payment that has used nothing, and lands', [...begun, failed, settled('1'), refunded('1')]],
  [
    'a payment that is moved again after a reorg, with another amount',
    [...begun, answered(), settled(), enqueued, reorged, settled('400'), enqueuedAgain, completed],
  ],
  [
    'a payment that is moved again after a reorg, with too much',
    [...begun, answered(), settled(), enqueued, reorged, settled('600'), refunded('600')],
  ],
  [
    'two payments of one nonce by two transfer methods',
    [...paidJob(1, { nonce }), ...uptoOf(uptoJob(51, { nonce }), { log_index: 6 })],
  ],
])('both verifiers accept %s', async (_, events) => expect(await verdictOn(events)).toBe('sound'));

test.each<[string, StreamEvent[], RegExp]>([
  [
    'an answer that uses more than was signed',
    [...begun, answered({ used: '2001' })],
    /uses 2001 atoms, but 2000 were signed/,
  ],
  ['an answer that uses nothing', [...begun, answered({ used: '0' })], /uses 0 atoms, but 2000 were signed/],
  ['an answer that does not say what it uses', [...begun, answered({})], /does not say what was used/],
  [
    'an answer of an exact payment that says what it uses',
    exactAnswered(),
    /its payer signed an exact amount/,
  ],
  [
    'a settlement of more than was signed',
    [...begun, answered(), settled('2001')],
    /settles 2001 atoms, but 2000 were signed/,
  ],
  ['a settlement of nothing', [...begun, answered(), settled('0')], /settles 0 atoms, but 2000 were signed/],
  [
    'a call of a payment that moved more than was used',
    [...begun, answered(), settled('501'), enqueued],
    /its payment moved 501 atoms, but 500 were used/,
  ],
  [
    'a call of a payment that landed before anything was used',
    [...begun, failed, settled('1'), enqueued],
    /its payment moved 1 atoms, but 0 were used/,
  ],
  [
    'a call of a payment that moved more than was used after a reorg',
    [...begun, answered(), settled(), enqueued, reorged, settled('501'), enqueuedAgain],
    /its payment moved 501 atoms, but 500 were used/,
  ],
  [
    'a second settlement of more than was signed, after a smaller first one',
    [...begun, answered(), settled('1'), enqueued, reorged, settled('2001')],
    /settles 2001 atoms, but 2000 were signed/,
  ],
  [
    'a refund of more than was moved',
    [...begun, answered(), settled('300'), refunded('301')],
    /refunds 301 atoms, but 300 of the 300 that were moved are left/,
  ],
  [
    'a payment that names another facilitator than its quote',
    [...begun.slice(0, 2), ...uptoJob(1, { payment: { submitter: other } }).begun.slice(2)],
    /its payment matches no option of its quote: submitter differs/,
  ],
  [
    'a payment by another method than its quote',
    [...begun.slice(0, 2), ...uptoJob(1, { payment: { transfer_method: 'eip3009' } }).begun.slice(2)],
    /its payment matches no option of its quote/,
  ],
  [
    'a payment whose facilitator was replaced in all events',
    replaced(submitter, other),
    /its signature is not by/,
  ],
  [
    'one payment by upto for two quotes',
    [...uptoJob(1, { nonce }).begun, ...uptoJob(51, { nonce }).begun],
    /this payment was claimed before/,
  ],
])('both verifiers reject %s', async (_, events, words) => expect(await verdictOn(events)).toMatch(words));

/** A whole payment by `upto`. */
function uptoOf(of: ReturnType<typeof uptoJob>, place: object): StreamEvent[] {
  return [...of.begun, of.answered(), of.settled(used, place), of.enqueued, of.completed];
}

/** A route's payment of an exact amount whose answer says what it has used. */
function exactAnswered(): StreamEvent[] {
  const [quoted, verified, started] = paidJob(1);
  if (!quoted || !verified || !started) throw new Error('no payment');
  const data = { ...started.event.data, upstream: { ends_at: 1_900_000_000 } };
  const asked = { ...started, event: { ...started.event, data } } as StreamEvent;
  return [quoted, verified, asked, { ...quoted, event: answered().event }];
}

/** The events with an address in place of another one, in the stream that the changed quote names. */
function replaced(from: string, to: string): StreamEvent[] {
  const events = JSON.parse(JSON.stringify(begun).replaceAll(from, to)) as StreamEvent[];
  const quoted = events[0]?.event;
  if (quoted?.type !== 'quote_issued') throw new Error('no quote');
  return events.map(({ event }) => ({ stream: recordedDigest(quoted.data), event }));
}
