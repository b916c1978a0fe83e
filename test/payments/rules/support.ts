import fc from 'fast-check';
import type { Address, Hex } from '../../../src/base/values/primitives.ts';
import { transferMethods } from '../../../src/base/values/transfer-method.ts';
import type { Quote, SettlementOption } from '../../../src/payments/rules/quote.ts';

/** The current time in these tests. */
export const nowSecs = 1_800_000_000;

/** `digits` repeated to `length` bytes. */
export const bytesOf = (digits: string, length: number): Hex => `0x${digits.repeat(length)}`;

export const asset = bytesOf('a1', 20);
export const payee = bytesOf('b2', 20);
export const payer = bytesOf('c3', 20);
export const nonce = bytesOf('d4', 32);

export const option: SettlementOption = {
  network: 'eip155:84532',
  transferMethod: 'eip3009',
  asset,
  symbol: 'USDC',
  decimals: 6,
  amount: 3_264_000n,
  payTo: payee,
  eip712Name: 'USD Coin',
  eip712Version: '2',
};

const anyBytes = (length: number): fc.Arbitrary<Hex> =>
  fc
    .uint8Array({ minLength: length, maxLength: length })
    .map((bytes): Hex => `0x${Buffer.from(bytes).toString('hex')}`);

export const anyHash = anyBytes(32);
export const anyAddress: fc.Arbitrary<Address> = anyBytes(20);
/** Whole numbers that JSON keeps. */
export const anyId = fc.maxSafeNat();
export const anyUint256 = fc.bigInt({ min: 0n, max: 2n ** 256n - 1n });

export const anyOption: fc.Arbitrary<SettlementOption> = fc.record({
  network: fc
    .integer({ min: 1, max: Number.MAX_SAFE_INTEGER })
    .map((chainId) => `eip155:${chainId}` as const),
  transferMethod: fc.constantFrom(...transferMethods),
  asset: anyAddress,
  symbol: fc.stringMatching(/^[A-Za-z0-9._-]{1,16}$/),
  decimals: fc.nat(36),
  amount: anyUint256,
  payTo: anyAddress,
  eip712Name: fc.stringMatching(/^[ -~]{1,64}$/),
  eip712Version: fc.stringMatching(/^[ -~]{1,64}$/),
});

export const anyQuote: fc.Arbitrary<Quote> = fc.record({
  serviceId: anyId,
  jobIndex: fc.nat(0xffff_ffff),
  priceWei: anyUint256,
  options: fc.array(anyOption, { minLength: 1, maxLength: 3 }),
  requester: anyAddress,
  inputsHash: anyHash,
  issuedAt: anyId,
  expiresAt: anyId,
  salt: anyHash,
  isSummarised: fc.boolean(),
});
