import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { LedgerEvent } from '../../../src/domain/events/event.ts';
import { type LedgerProblem, LedgerCheck } from '../../../src/domain/verify/ledger-check.ts';
import { busyLedger, hex32Of, leavesOf, paidJob, type StreamEvent } from '../../support/synthetic-ledger.ts';

/** The first fault of a ledger with these events. */
function faultOf(events: readonly StreamEvent[]): LedgerProblem | undefined {
  const check = new LedgerCheck();
  for (const leaf of leavesOf(events, events.length)) {
    const fault = check.next(Buffer.from(leaf));
    if (fault) return fault;
  }
  return undefined;
}

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
const settledOnWord = event('payment_settled', { ...named, amount, transaction, evidence: 'facilitator' });
const confirmed = event('settlement_confirmed', { ...named, transaction, ...block });
const disproved = (then: string) =>
  event('settlement_disproved', { ...named, transaction, reason: 'not_on_chain', call: then });
const reorged = event('settlement_reorged', {
  ...named,
  transaction,
  block_number: '1001',
  block_hash: block.block_hash,
  call: 'withdrawn',
});
const dead = event('dead_lettered', { ...call, reason: 'attempts_exhausted' });
const requeued = event('operator_requeued', { call_id: 2 });
const away = {
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
    ...away,
    ...change,
  });
const swept = (change: object = {}, of = `sweep:84532:${away.transaction}:4`): StreamEvent => ({
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
      ...away,
      ...change,
    },
  } as LedgerEvent,
});

test.each<[string, StreamEvent[]]>([
  ['a paid job to its end', job],
  ['a failed payment that landed late', after(3, failed, ...job.slice(3))],
  ['a failed payment, and another for the same quote', after(3, failed, ...secondPayment())],
  ['an unknown settlement that the chain resolved', after(3, unknown, unknown, ...job.slice(3))],
  ['a word that was confirmed', after(3, settledOnWord, job[4]!, confirmed, ...job.slice(5))],
  [
    'a word that was disproved while a runner had the call',
    after(3, settledOnWord, job[4]!, job[5]!, disproved('kept'), job[3]!, job[6]!),
  ],
  ['a reorganised block, settled again', after(5, reorged, job[3]!, ...job.slice(4))],
  ['a dead letter that was put back', after(6, dead, requeued, job[5]!, job[6]!)],
  ['a dead letter whose payment was refunded', after(6, dead, refunded())],
  ['a completed call whose payment was refunded', after(7, refunded())],
  ['a refund while the call was on its way', after(5, refunded(), job[5]!, job[6]!)],
  ['a payment without a call that was refunded', after(4, refunded())],
  ['a sweep', [swept()]],
  [
    'two transfers of one transaction',
    [swept(), swept({ log_index: 5 }, `sweep:84532:${away.transaction}:5`)],
  ],
  [
    "a payer's name for a payment that failed, used again",
    [...identified(paidJob(1)).slice(0, 3), failed, ...identified(paidJob(51))],
  ],
  ["another payer's name that is the same", [...identified(paidJob(1)), ...identified(paidJob(2))]],
])('%s is legal', (_, told) => {
  expect(faultOf(told)).toBeUndefined();
});

test.each<[string, StreamEvent[], RegExp]>([
  ['settled without being started', after(2, job[3]!), /never started/],
  ['started without being verified', after(1, job[2]!), /not verified/],
  ['started twice', after(3, job[1]!, job[2]!), /is settling already/],
  ['settled twice', after(4, job[3]!), /is settled, which cannot be followed by payment_settled/],
  [
    'failed after it was settled',
    after(5, failed),
    /is settled, which cannot be followed by settlement_failed/,
  ],
  ['unknown after it was settled', after(5, unknown), /cannot be followed by settlement_unknown/],
  ['confirmed before it was settled', after(3, confirmed), /is settling, which cannot be followed/],
  ['enqueued before it was settled', after(3, job[4]!), /no settled payment/],
  ['enqueued twice', after(5, job[4]!), /no settled payment/],
  ['delivered before it was enqueued', after(4, job[5]!), /call 2 was never enqueued/],
  ['delivered after it was completed', after(7, job[5]!), /the call is completed/],
  ['completed twice', after(7, job[6]!), /the call is completed/],
  [
    'put back while it is no dead letter',
    after(6, requeued),
    /the call is delivered, which cannot be followed by operator_requeued/,
  ],
  ['completed after it was withdrawn', after(5, reorged, job[6]!), /never enqueued/],
  ['quoted twice', after(1, job[0]!), /issued once/],
  ['a payment of no quote', job.slice(1), /belongs to a quote/],
  [
    'refunded before it was settled',
    after(3, refunded()),
    /is settling, which cannot be followed by refunded/,
  ],
  [
    'refunded after its settlement was disproved',
    after(5, disproved('kept'), refunded()),
    /is settlement_unk/,
  ],
  ['refunded twice', after(6, dead, refunded(), refunded({ log_index: 5 })), /was refunded before/],
  ['refunded by another amount', after(6, dead, refunded({ amount: '1' })), /refunds 1 atoms, but 2000 were/],
  [
    'refunded to somebody else',
    after(6, dead, refunded({ refunded_to: asset })),
    /refunds 0x5f\w+, but 0x\w+ has paid/,
  ],
  ['put back after it was refunded', after(6, dead, refunded(), requeued), /its payment was refunded/],
  ['enqueued after it was refunded', after(4, refunded(), job[4]!), /no settled payment/],
  [
    'refunded with the transfer that paid',
    after(6, dead, refunded({ transaction, log_index: 1 })),
    /has paid before/,
  ],
  ['refunded with a transfer that is a sweep', [swept(), ...after(6, dead, refunded())], /has paid before/],
  ['swept with a transfer that is a refund', [...after(6, dead, refunded()), swept()], /has paid before/],
  [
    'swept in the stream of another transfer',
    [swept({ log_index: 5 })],
    /name something else than its stream/,
  ],
  ['swept twice', [swept(), swept()], /the sweep is recorded/],
  [
    'one transfer for two payments',
    [...job, ...paidJob(2).slice(0, 3), sameTransfer()],
    /transfer on the chain has paid before/,
  ],
  [
    "one name of a payer's for two payments",
    [...identified(paidJob(1)), ...identified(paidJob(51))],
    /payer's name for this payment was claimed before/,
  ],
])('a call %s is illegal', (_, told, words) => {
  expect(faultOf(told)?.words).toMatch(words);
});

/** A job whose payment its payer has called something; every fiftieth job has the same payer. */
function identified(told: readonly StreamEvent[]): StreamEvent[] {
  return told.map(({ stream: of, event: { type, data } }) => {
    const more = type === 'settlement_started' ? { payment_id: 'pay_7d5d747be160e280' } : {};
    return { stream: of, event: { type, data: { ...data, ...more } } as LedgerEvent };
  });
}

/** Another payer takes the quote that was freed. */
function secondPayment(): StreamEvent[] {
  const text = JSON.stringify(job.slice(1, 3)).replaceAll(payment_nonce ?? '', hex32Of('another nonce'));
  return JSON.parse(text) as StreamEvent[];
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

test('a busy ledger is sound, and its counts are its events', () => {
  const check = new LedgerCheck();
  for (const leaf of leavesOf(busyLedger(), 1_140)) expect(check.next(Buffer.from(leaf))).toBeUndefined();
  expect(check.counts.get('payment_settled')).toBe(160);
  expect(check.seq).toBe(1_140);
});

test('an event that is taken out is missed at its own place or at the next one of its stream', () => {
  const leaves = [...leavesOf(busyLedger(), 171)];
  fc.assert(
    fc.property(fc.nat(169), (gone) => {
      const check = new LedgerCheck();
      const faults = leaves.toSpliced(gone, 1).map((leaf) => check.next(Buffer.from(leaf)));
      expect(faults.find((fault) => fault !== undefined)?.seq).toBe(gone + 1);
    }),
  );
});
