import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import type { LedgerEvent } from '../../../src/ledger/rules/event.ts';
import { hex32Of, paidJob, type StreamEvent } from '../../support/synthetic-ledger.ts';
import { verdictOn } from '../../support/verify.ts';

const inputsHash = hex32Of('the body');
const another = hex32Of('another body');
const { payer } = paidJob(1)[1]!.event.data as { readonly payer: string };
const stranger = `0x${'77'.repeat(20)}`;

const of = (stream: string, type: string, data: object): StreamEvent => ({
  stream,
  event: { type, data } as LedgerEvent,
});

/** An unpaid bound quote, then a lost payment of it that its payer asks to have delivered. */
function delivered(
  quote: Parameters<typeof paidJob>[1],
  asked: { readonly payer?: string; readonly body?: string; readonly quoteDigest?: string },
): StreamEvent[] {
  const [issued] = paidJob(1, quote);
  if (!issued) throw new Error('no quote');
  const [network, asset] = ['eip155:84532', `0x${'5f'.repeat(20)}`];
  const by = asked.payer ?? payer;
  const nonce = hex32Of('lost');
  const stream = `0x${createHash('sha256').update(`${network}/eip3009/${asset}/${by}/${nonce}`).digest('hex')}`;
  const named = { network, asset, payer: by, payment_nonce: nonce };
  return [
    issued,
    of('recovery:2', 'ledger_recovered', {
      generation: 2,
      kept_seq: 1,
      since: 0,
      reason: 'forced',
      operator: 'ada',
    }),
    of(stream, 'payment_recovered', {
      ...named,
      transfer_method: 'eip3009',
      symbol: 'USDC',
      decimals: 6,
      pay_to: `0x${'90'.repeat(20)}`,
      amount: '1000',
      transaction: hex32Of('its transaction'),
      block_number: '1234',
      block_hash: hex32Of('its block'),
      log_index: 3,
      generation: 2,
    }),
    of(stream, 'redelivery_requested', {
      ...named,
      service_id: 1,
      job_index: 1,
      request_id: '00000000-0000-4000-8000-000000000001',
      binding: hex32Of('binding'),
      body_sha256: hex32Of('body'),
      ...(asked.body && { body_keccak256: asked.body }),
      body_bytes: 1,
      x402_version: 2,
      quote_digest: asked.quoteDigest ?? issued.stream,
      signature: '0x',
    }),
  ];
}

test.each<[string, StreamEvent[], RegExp | undefined]>([
  ['a payment by its requester', paidJob(1, { requester: payer }), undefined],
  ['a payment for its body', paidJob(1, { inputsHash, bodyKeccak256: inputsHash }), undefined],
  [
    'a payment by another payer',
    paidJob(1, { requester: stranger }),
    /for 0x7+ alone|only for another payer/,
  ],
  [
    'a payment for another body',
    paidJob(1, { requester: payer, inputsHash, bodyKeccak256: another }),
    /only for another body|body with the hash 0x\w+ alone, but it has 0x/,
  ],
  [
    'a payment that does not record for which body it is',
    paidJob(1, { inputsHash }),
    /only for another body|body with the hash 0x\w+ alone, but it has none/,
  ],
  [
    'a delivery to its requester for its body',
    delivered({ requester: payer, inputsHash }, { body: inputsHash }),
    undefined,
  ],
  ['a delivery of a quote that was lost', delivered({ inputsHash }, { quoteDigest: another }), undefined],
  [
    'a delivery to another payer',
    delivered({ requester: payer }, { payer: stranger }),
    /for 0x\w+ alone|only for another payer/,
  ],
  [
    'a delivery for another body',
    delivered({ inputsHash }, { body: another }),
    /only for another body|body with the hash/,
  ],
])('both verifiers agree on a bound quote with %s', async (_, events, words) =>
  expect(await verdictOn(events)).toMatch(words ?? /^sound$/),
);
