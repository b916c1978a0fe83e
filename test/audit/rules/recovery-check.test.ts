import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import type { LedgerEvent } from '../../../src/ledger/rules/event.ts';
import { hex32Of, paidJob, type StreamEvent } from '../../support/synthetic-ledger.ts';
import { verdictOn } from '../../support/verify.ts';

const event = (stream: string, type: string, data: object): StreamEvent => ({
  stream,
  event: { type, data } as LedgerEvent,
});
const known = paidJob(1);
const settled = known[3]!.event.data as Readonly<Record<string, string>>;
const [network, asset, payer, nonce] = [
  'eip155:84532',
  `0x${'5f'.repeat(20)}`,
  `0x${'11'.repeat(20)}`,
  hex32Of('lost'),
];
const named = { network, asset, payer, payment_nonce: nonce };
const streamOf = (by: string, of: string): string =>
  `0x${createHash('sha256').update(`${network}/eip3009/${asset}/${by}/${of}`).digest('hex')}`;
const stream = streamOf(payer, nonce);
const transfer = {
  transaction: hex32Of('its transaction'),
  block_number: '1234',
  block_hash: hex32Of('its block'),
  log_index: 3,
};
const ended = (generation: number, keptSeq = 7): StreamEvent =>
  event(`recovery:${generation}`, 'ledger_recovered', {
    generation,
    kept_seq: keptSeq,
    since: 0,
    reason: 'forced',
    operator: 'ada',
  });
const recovered = (change: object = {}, at = stream): StreamEvent =>
  event(at, 'payment_recovered', {
    ...named,
    transfer_method: 'eip3009',
    symbol: 'USDC',
    decimals: 6,
    pay_to: `0x${'90'.repeat(20)}`,
    amount: '1000',
    ...transfer,
    generation: 2,
    ...change,
  });
const requested = event(stream, 'redelivery_requested', {
  ...named,
  service_id: 1,
  job_index: 0,
  request_id: '00000000-0000-4000-8000-000000000001',
  binding: hex32Of('binding'),
  body_sha256: hex32Of('body'),
  body_bytes: 1,
  x402_version: 2,
  signature: '0x',
});
const enqueued = event(stream, 'enqueued', { call_id: 9, payment_nonce: nonce });
const completed = event(stream, 'completed', { call_id: 9, attempt: 1 });
const refunded = event(stream, 'refunded', {
  ...named,
  amount: '1000',
  refunded_from: `0x${'90'.repeat(20)}`,
  refunded_to: payer,
  ...transfer,
  log_index: 4,
  operator: 'ada',
});
const searched = event('recovery:2', 'network_searched', {
  generation: 2,
  network,
  from_block: '1',
  to_block: '2',
  found: 1,
});
const begun = [...known, ended(2)];

test.each<[string, StreamEvent[]]>([
  ['refunded', [...begun, recovered(), searched, refunded]],
  ['delivered to its payer', [...begun, recovered(), requested, enqueued, completed]],
  ['found by a later recovery', [...begun, ended(3, 8), recovered({ generation: 3 })]],
])('both verifiers accept a recovered payment that is %s', async (_, events) =>
  expect(await verdictOn(events)).toBe('sound'),
);

test.each<[string, StreamEvent[]]>([
  ['a recovered payment before any recovery', [...known, recovered()]],
  ['a recovered payment of a later recovery', [...begun, recovered({ generation: 3 })]],
  ['a recovered payment in the stream of another', [...begun, recovered({}, hex32Of('another'))]],
  ['a payment that is recovered twice', [...begun, recovered(), recovered()]],
  [
    'a payment that is on record already',
    [
      ...begun,
      recovered(
        { payer: settled['payer'], payment_nonce: settled['payment_nonce'] },
        streamOf(settled['payer']!, settled['payment_nonce']!),
      ),
    ],
  ],
  [
    'a transfer that has paid for another',
    [...begun, recovered({ transaction: settled['transaction'], log_index: 1 })],
  ],
  ['a delivery that no payer requested', [...begun, recovered(), enqueued]],
  ['a delivery that is requested twice', [...begun, recovered(), requested, requested]],
  ['a delivery that is requested after the refund', [...begun, recovered(), refunded, requested]],
  ['a delivery of a payment that was never lost', [...begun, { ...requested, stream: known[0]!.stream }]],
  ['a recovery that skips a generation', [...known, ended(3)]],
  ['a recovery that says it kept itself', [...known, ended(2, 8)]],
  ['a search without a recovery', [...known, searched]],
])('both verifiers reject %s', async (_, events) => expect(await verdictOn(events)).not.toBe('sound'));
