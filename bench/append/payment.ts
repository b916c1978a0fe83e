import { randomBytes, randomUUID } from 'node:crypto';
import { orderedUuid } from '../../src/base/values/ordered-uuid.ts';
import type { LaneCommand } from '../../src/ledger/store/append-batch.ts';

export const network = 'eip155:84532';
const hex = (bytes: number): `0x${string}` => `0x${randomBytes(bytes).toString('hex')}`;
const [asset, payTo] = [hex(20), hex(20)];
const terms = {
  network,
  transfer_method: 'eip3009',
  asset,
  symbol: 'USDC',
  decimals: 6,
  amount: '3264000',
  pay_to: payTo,
  eip712_name: 'USD Coin',
  eip712_version: '2',
} as const;

/** A payment's three appends up to its delivery. */
export function payment() {
  const [stream, payer, nonce] = [hex(32), hex(20), hex(32)];
  const named = { network, asset, payer, payment_nonce: nonce };
  const [key, binding] = [hex(32), hex(32)];
  const quote: LaneCommand = {
    stream,
    expect: 0,
    events: [
      {
        type: 'quote_issued',
        data: {
          service_id: 1,
          job_index: 0,
          price_wei: '1000000000000000',
          options: [terms],
          requester: `0x${'0'.repeat(40)}`,
          inputs_hash: hex(32),
          issued_at: 1_800_000_000,
          expires_at: 1_800_000_300,
          salt: hex(32),
        },
      },
    ],
  };
  const start: LaneCommand = {
    stream,
    expect: 1,
    issuedAt: 1_795_000_000,
    events: [
      { type: 'payment_verified', data: { ...named, by: 'facilitator' } },
      {
        type: 'settlement_started',
        data: {
          request_id: randomUUID(),
          binding,
          body_sha256: hex(32),
          body_bytes: 100,
          payment: {
            x402_version: 2,
            ...terms,
            payer,
            nonce,
            valid_after: '0',
            valid_before: '1800000300',
            signature: hex(65),
            max_timeout_secs: 300,
          },
        },
      },
    ],
    claims: [
      { kind: 'payment', owner: payer, scope: `${network}/eip3009`, key: nonce, part: asset, binding },
    ],
    call: {
      op: 'add',
      serviceId: 1,
      jobIndex: 0,
      bodyId: orderedUuid(),
      body: { contentType: 'application/json', bytes: randomBytes(100) },
      network,
      asset,
      symbol: 'USDC',
      caller: undefined,
      payment: key,
      idempotencyKey: key,
      delayMs: 5_000,
    },
  };
  const transaction = hex(32);
  const settle = (callId: number): LaneCommand => ({
    stream,
    expect: 3,
    events: [
      {
        type: 'payment_settled',
        data: { ...named, amount: terms.amount, transaction, evidence: 'facilitator' },
      },
      { type: 'enqueued', data: { call_id: callId, payment_nonce: nonce } },
    ],
    claims: [{ kind: 'transfer', owner: '', scope: network, key: transaction, part: '1', binding: nonce }],
    call: { op: 'release', callId },
  });
  return { quote, start, settle };
}
