import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { LedgerEvent } from '../../../src/ledger/rules/event.ts';
import { LedgerCheck } from '../../../src/audit/rules/ledger-check.ts';
import { firstProblem } from '../../support/first-problem.ts';
import { busyLedger, hex32Of, leavesOf, paidJob, type StreamEvent } from '../../support/synthetic-ledger.ts';
import { propertyRuns } from '../../support/property-runs.ts';
import { verdictOn } from '../../support/verify.ts';

const job = paidJob(1);
const { stream } = job[0]!;
const { network, asset, payer, payment_nonce, amount, transaction } = job[3]!.event.data as Readonly<
  Record<string, string>
>;
const named = { network, asset, payer, payment_nonce };
const block = { block_number: '1001', block_hash: hex32Of('block 1'), log_index: 1 };
const call = { call_id: 2, attempt: 1 };
const event = (type: string, data: object): StreamEvent => ({ stream, event: { type, data } as LedgerEvent });
const after = (count: number, ...more: StreamEvent[]): StreamEvent[] => [...job.slice(0, count), ...more];

const failed = event('settlement_failed', { ...named, reason: 'no_funds' });
const unknown = event('settlement_unknown', { ...named, reason: 'timeout' });
const settledByReport = event('payment_settled', { ...named, amount, transaction, evidence: 'facilitator' });
const confirmed = event('settlement_confirmed', { ...named, transaction, ...block });
const disproved = (then: string) =>
  event('settlement_disproved', { ...named, transaction, reason: 'not_on_chain', call: then });
const enqueuedAgain: StreamEvent = {
  stream: job[4]!.stream,
  event: { ...job[4]!.event, type: 'enqueued_again' } as StreamEvent['event'],
};
const reorged = event('settlement_reorged', {
  ...named,
  transaction,
  block_number: '1001',
  block_hash: block.block_hash,
  call: 'withdrawn',
});
const dead = event('dead_lettered', { ...call, reason: 'attempts_exhausted' });
const requeued = event('operator_requeued', { call_id: 2 });
const givenUp = event('operator_discarded', { call_id: 2, why: 'the model is gone', operator: 'ops' });
const returnTransfer = {
  transaction: hex32Of('a refund'),
  block_number: '2000',
  block_hash: hex32Of('block 2000'),
  log_index: 4,
  operator: 'ada',
};
const refunded = (change: object = {}): StreamEvent =>
  event('refunded', {
    ...named,
    amount,
    refunded_from: `0x${'90'.repeat(20)}`,
    refunded_to: payer,
    ...returnTransfer,
    ...change,
  });
const swept = (change: object = {}, of = `sweep:84532:${returnTransfer.transaction}:4`): StreamEvent => ({
  stream: of,
  event: {
    type: 'operator_sweep_recorded',
    data: {
      network,
      asset,
      symbol: 'USDC',
      decimals: 6,
      pay_to: `0x${'90'.repeat(20)}`,
      swept_to: `0x${'77'.repeat(20)}`,
      amount: '5000',
      ...returnTransfer,
      ...change,
    },
  } as LedgerEvent,
});

test.each<[string, StreamEvent[]]>([
  ['a paid job up to its completion', job],
  ["a payment whose signature only its payer's contract can check", paidJob(1, { isSignedByContract: true })],
  ['a failed payment that landed late', after(3, failed, ...job.slice(3))],
  ['an unknown settlement that the chain resolved', after(3, unknown, unknown, ...job.slice(3))],
  [
    "a facilitator's report that was confirmed",
    after(3, settledByReport, job[4]!, confirmed, ...job.slice(5)),
  ],
  [
    "a facilitator's report that was disproved while a runner had the call",
    after(3, settledByReport, job[4]!, job[5]!, disproved('kept'), job[3]!, job[6]!),
  ],
  [
    'a payment that was reorged out and settled again',
    after(5, reorged, job[3]!, enqueuedAgain, ...job.slice(5)),
  ],
  ['a dead letter that was requeued', after(6, dead, requeued, job[5]!, job[6]!)],
  ['a dead letter whose payment was refunded', after(6, dead, refunded())],
  [
    'a dead letter whose payment was refunded in two parts, one of them to another address with evidence',
    after(
      6,
      dead,
      refunded({ amount: '500' }),
      refunded({ amount: '1500', log_index: 5, refunded_to: asset, evidence: 'ticket 7' }),
    ),
  ],
  ['a completed call whose payment was refunded', after(7, refunded())],
  ['a refund while the call was being delivered', after(5, refunded(), job[5]!, job[6]!)],
  ['a payment without a call that was refunded', after(4, refunded())],
  ['a recorded sweep', [swept()]],
  [
    'two transfers of one transaction',
    [swept(), swept({ log_index: 5 }, `sweep:84532:${returnTransfer.transaction}:5`)],
  ],
  [
    'a payment id that is used again after its payment failed',
    [...identified(paidJob(1)).slice(0, 3), failed, ...identified(paidJob(51))],
  ],
  ['the same payment id from two payers', [...identified(paidJob(1)), ...identified(paidJob(2))]],
  [
    "a caller's nonce that is used again after its payment failed",
    [...delegatedTo(paidJob(1)).slice(0, 4), failed, ...delegatedTo(paidJob(4))],
  ],
  [
    "a caller's nonce whose payment failed and landed late",
    [...delegatedTo(paidJob(1)).slice(0, 4), failed, ...paidJob(1).slice(3)],
  ],
])('both verifiers accept %s', async (_, events) => expect(await verdictOn(events)).toBe('sound'));

/** The job with the data of one of its events changed. */
const edited = (at: number, change: object): StreamEvent[] =>
  job.with(at, event(job[at]!.event.type, { ...job[at]!.event.data, ...change }));
const { payment: signed } = job[2]!.event.data as { readonly payment: object };

test.each<[string, StreamEvent[], RegExp]>([
  [
    'a settlement of more than was signed',
    edited(3, { amount: '999000' }),
    /settles 999000 atoms, but 2000 /,
  ],
  [
    'a payment of more than its quote asks for',
    edited(2, { payment: { ...signed, amount: '999000' } }),
    /its payment matches no option of its quote: amount differs/,
  ],
  [
    'a payment whose payer was replaced in all of its events',
    job.map((one) => JSON.parse(JSON.stringify(one).replaceAll(payer!, asset!)) as StreamEvent),
    /its signature is not by 0x5f\w+ over these terms/,
  ],
  ['a quote with other terms', edited(0, { price_wei: '1' }), /its terms do not match its digest/],
  ['the settlement of another payment', edited(3, { payment_nonce: hex32Of('x') }), /was never started/],
  [
    'one payment for two quotes',
    [...paidJob(1), ...paidJob(151, { nonce: hex32Of('nonce 1') }).slice(0, 3)],
    /this payment was claimed before/,
  ],
  ['a payment settled without being started', after(2, job[3]!), /never started/],
  ['a payment started without being verified', after(1, job[2]!), /not verified/],
  ['a payment started twice', after(3, job[1]!, job[2]!), /is settling already/],
  [
    'another payment for the quote of a failed one',
    after(3, failed, ...secondPayment()),
    /is settlement_failed already: one quote, one payment/,
  ],
  ['a payment settled twice', after(4, job[3]!), /is settled, which cannot be followed by payment_settled/],
  [
    'a payment that fails after it was settled',
    after(5, failed),
    /is settled, which cannot be followed by settlement_failed/,
  ],
  [
    'a settlement that becomes unknown after it was settled',
    after(5, unknown),
    /cannot be followed by settlement_unknown/,
  ],
  ['a payment confirmed before it was settled', after(3, confirmed), /is settling, which cannot be followed/],
  ['a call enqueued before its payment was settled', after(3, job[4]!), /no settled payment/],
  ['a call enqueued twice', after(5, job[4]!), /no settled payment/],
  ['a call counted twice as accepted', after(5, reorged, job[3]!, job[4]!), /enqueued before/],
  ['a call delivered before it was enqueued', after(4, job[5]!), /call 2 was never enqueued/],
  ['a call delivered after it was completed', after(7, job[5]!), /the call is completed/],
  ['a call completed twice', after(7, job[6]!), /the call is completed/],
  [
    'a requeued call that is not a dead letter',
    after(6, requeued),
    /the call is delivered, which cannot be followed by operator_requeued/,
  ],
  [
    'a call requeued after it was given up',
    [...after(6, dead), givenUp, requeued],
    /the call was given up, which cannot be followed by operator_requeued/,
  ],
  ['a call given up twice', [...after(6, dead), givenUp, givenUp], /the call was given up/],
  ['a call completed after it was withdrawn', after(5, reorged, job[6]!), /never enqueued/],
  ['a quote issued twice', after(1, job[0]!), /issued once/],
  ['a payment without a quote', job.slice(1), /belongs to a quote/],
  [
    'a payment refunded before it was settled',
    after(3, refunded()),
    /is settling, which cannot be followed by refunded/,
  ],
  [
    'a payment refunded after its settlement was disproved',
    after(5, disproved('kept'), refunded()),
    /is settlement_unk/,
  ],
  ['a payment refunded twice', after(6, dead, refunded(), refunded({ log_index: 5 })), /was refunded before/],
  [
    'a part of a refund that is more than is left',
    after(6, dead, refunded({ amount: '500' }), refunded({ amount: '1501', log_index: 5 })),
    /refunds 1501 atoms, but 1500 of the 2000 that were moved are left/,
  ],
  ['a refund of nothing', after(6, dead, refunded({ amount: '0' })), /refunds 0 atoms/],
  [
    'a refund to the payer with evidence for another address',
    after(6, dead, refunded({ evidence: 'ticket 7' })),
    /has evidence/,
  ],
  [
    'a call requeued after a part of its payment was refunded',
    after(6, dead, refunded({ amount: '1' }), requeued),
    /its payment was refunded/,
  ],
  [
    'a refund to an address other than the payer without evidence',
    after(6, dead, refunded({ refunded_to: asset })),
    /refunds 0x5f\w+, and 0x\w+ has paid: a refund to another address, and no other, has evidence/,
  ],
  [
    'a call requeued after its payment was refunded',
    after(6, dead, refunded(), requeued),
    /its payment was refunded/,
  ],
  ['a call enqueued after its payment was refunded', after(4, refunded(), job[4]!), /no settled payment/],
  [
    'a refund whose transfer is the payment itself',
    after(6, dead, refunded({ transaction, log_index: 1 })),
    /transfer was claimed before/,
  ],
  [
    'a refund whose transfer is a sweep',
    [swept(), ...after(6, dead, refunded())],
    /transfer was claimed before/,
  ],
  [
    'a sweep whose transfer is a refund',
    [...after(6, dead, refunded()), swept()],
    /transfer was claimed before/,
  ],
  [
    'a sweep in the stream of another transfer',
    [swept({ log_index: 5 })],
    /do not match the entity of its stream/,
  ],
  ['a sweep recorded twice', [swept(), swept()], /the sweep is recorded/],
  [
    'one transfer for two payments',
    [...job, ...paidJob(2).slice(0, 3), sameTransfer()],
    /transfer was claimed before/,
  ],
  [
    'one payment id for two payments',
    [...identified(paidJob(1)), ...identified(paidJob(51))],
    /payer's payment id was claimed before/,
  ],
  [
    'one payment id for two payments, of which the first failed and landed late',
    [...identified(paidJob(1)).slice(0, 3), failed, ...identified(paidJob(51)), ...paidJob(1).slice(3)],
    /^enqueued of .*payer's payment id was claimed before/,
  ],
  [
    "one caller's nonce for two payments",
    [...delegatedTo(paidJob(1)), ...delegatedTo(paidJob(4))],
    /^settlement_started of .*caller's nonce was claimed before/,
  ],
  [
    "one caller's nonce for two payments, of which the first failed and landed late",
    [...delegatedTo(paidJob(1)).slice(0, 4), failed, ...delegatedTo(paidJob(4)), ...paidJob(1).slice(3)],
    /^enqueued of .*caller's nonce was claimed before/,
  ],
])('both verifiers reject %s', async (_, events, words) => expect(await verdictOn(events)).toMatch(words));

/** A job whose payment carries a payment id; every fiftieth job has the same payer. */
function identified(events: readonly StreamEvent[]): StreamEvent[] {
  return events.map(({ stream: of, event: { type, data } }) => {
    const more = type === 'settlement_started' ? { payment_id: 'pay_7d5d747be160e280' } : {};
    return { stream: of, event: { type, data: { ...data, ...more } } as LedgerEvent };
  });
}

/** A job that a delegated caller calls, with the same nonce each time; every third job is the same one. */
function delegatedTo(events: readonly StreamEvent[]): StreamEvent[] {
  const { stream: of } = events[0]!;
  const data = {
    caller: asset ?? '',
    mode: 'delegated_caller_signature',
    caller_nonce_sha256: hex32Of('a caller nonce'),
  };
  return events.toSpliced(2, 0, { stream: of, event: { type: 'auth_passed', data } as LedgerEvent });
}

/** Another payer takes the quote that was freed. */
function secondPayment(): StreamEvent[] {
  return paidJob(1, { nonce: hex32Of('another nonce') }).slice(1, 3);
}

function sameTransfer(): StreamEvent {
  const other = paidJob(2)[3]!;
  return {
    stream: other.stream,
    event: {
      type: 'payment_settled',
      data: { ...other.event.data, transaction, log_index: 1 },
    } as LedgerEvent,
  };
}

test('a ledger of many streams is sound, and the counts equal its events', () => {
  const check = new LedgerCheck();
  for (const leaf of leavesOf(busyLedger(), 1_140)) expect(check.next(Buffer.from(leaf))).toBeUndefined();
  expect(check.counts.get('payment_settled')).toBe(160);
  expect(check.seq).toBe(1_140);
});

test('removing any one event is reported at the position of the removed event', () => {
  const leaves = [...leavesOf(busyLedger(), 171)];
  fc.assert(
    fc.property(fc.nat(169), (removed) => {
      const left = leaves.toSpliced(removed, 1).map((leaf) => Buffer.from(leaf));
      expect(firstProblem(left)?.seq).toBe(removed + 1);
    }),
    propertyRuns(30),
  );
});
