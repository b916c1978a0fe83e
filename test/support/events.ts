import { randomBytes, randomUUID } from 'node:crypto';
import type { LedgerEvent } from '../../src/ledger/rules/event.ts';
import type { Hex } from '../../src/base/values/primitives.ts';

export const randomHex32 = (): Hex => `0x${randomBytes(32).toString('hex')}`;
const randomAddress = (): Hex => `0x${randomBytes(20).toString('hex')}`;

export function quoteIssued({ isSummarised = false } = {}): LedgerEvent {
  return {
    type: 'quote_issued',
    data: {
      service_id: 1,
      job_index: 0,
      price_wei: '1000000000000000',
      options: [
        {
          network: 'eip155:84532',
          transfer_method: 'eip3009',
          asset: randomAddress(),
          symbol: 'USDC',
          decimals: 6,
          amount: '3264000',
          pay_to: randomAddress(),
          eip712_name: 'USD Coin',
          eip712_version: '2',
        },
      ],
      requester: `0x${'0'.repeat(40)}`,
      inputs_hash: `0x${'0'.repeat(64)}`,
      issued_at: 1_800_000_000,
      expires_at: 1_800_000_300,
      salt: randomHex32(),
      ...(isSummarised ? { summarised: true } : {}),
    },
  };
}

export function refused(code = 'x402_disabled'): LedgerEvent {
  return { type: 'request_refused', data: { code } };
}

export function replayDenied(): LedgerEvent {
  return {
    type: 'payment_replay_denied',
    data: {
      claim: 'payment',
      network: 'eip155:84532',
      payment_nonce: randomHex32(),
      payer: randomAddress(),
      quote_digest: randomHex32(),
    },
  };
}

export const newStream = (): string => `request:${randomUUID()}`;

/** What a call of a test was paid with. */
export const paidWith = {
  idempotencyKey: 'a',
  network: 'eip155:1',
  asset: '0xa5',
  symbol: 'USDC',
  caller: undefined,
  delayMs: 0,
} as const;
