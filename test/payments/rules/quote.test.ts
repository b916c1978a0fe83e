import fc from 'fast-check';
import { concat, hashTypedData, keccak256, stringToBytes } from 'viem';
import { describe, expect, test } from 'vitest';
import { encodeEventData, type EventData } from '../../../src/ledger/rules/event.ts';
import type { Hex } from '../../../src/base/values/primitives.ts';
import {
  fullOptions,
  optionFromJson,
  optionHash,
  optionJson,
  provenQuoteToData,
  type Quote,
  quoteDigest,
  quoteDigestOf,
  quoteToData,
  quoteTypedData,
  recordedDigest,
  type SettlementOption,
  zeroAddress,
  zeroHash,
} from '../../../src/payments/rules/quote.ts';
import { anyOption, anyQuote, bytesOf, nowSecs, option } from './support.ts';

/** As it is read back from the ledger. */
const recorded = (data: EventData<'quote_issued'>): EventData<'quote_issued'> =>
  JSON.parse(encodeEventData({ type: 'quote_issued', data })) as EventData<'quote_issued'>;

const quote: Quote = {
  serviceId: 1,
  jobIndex: 0,
  priceWei: 10n ** 15n,
  options: [option],
  requester: zeroAddress,
  inputsHash: zeroHash,
  issuedAt: nowSecs,
  expiresAt: nowSecs + 300,
  salt: bytesOf('5a', 32),
  isSummarised: false,
};

/** The digest as any EIP-712 tool computes it, given the type and the documented `optionsHash`. */
function digestByViem(of: Quote): Hex {
  return hashTypedData({
    ...quoteTypedData,
    message: {
      ...of,
      serviceId: BigInt(of.serviceId),
      issuedAt: BigInt(of.issuedAt),
      expiresAt: BigInt(of.expiresAt),
      optionsHash: keccak256(
        concat(of.options.map((each) => keccak256(stringToBytes(canonicalOption(each))))),
      ),
    },
  });
}

/** An option's canonical JSON, written out: keys in order, no white space. */
function canonicalOption(of: SettlementOption): string {
  const text = JSON.stringify;
  return (
    `{"amount":"${of.amount}","asset":"${of.asset}","decimals":${of.decimals},` +
    `"eip712_name":${text(of.eip712Name)},"eip712_version":${text(of.eip712Version)},` +
    `"network":"${of.network}","pay_to":"${of.payTo}","symbol":"${of.symbol}","transfer_method":"${of.transferMethod}"}`
  );
}

describe("a quote's digest", () => {
  test('is the one on record for a known quote', () => {
    const digest = '0x92f30bfaeaf0df33acd70701566acefc501dd431e5e5a4021e5c6ec82988ed7f';
    expect(quoteDigest(quote)).toBe(digest);
    expect(digestByViem(quote)).toBe(digest);
  });

  test("is viem's digest of the published typed data, for any quote", () => {
    fc.assert(
      fc.property(anyQuote, (any) => {
        expect(quoteDigest(any)).toBe(digestByViem(any));
      }),
    );
  });

  test('is over the published EIP-712 type', () => {
    const members = quoteTypedData.types.JobQuote.map(({ type, name }) => `${type} ${name}`);
    expect(`${quoteTypedData.primaryType}(${members.join(',')})`).toBe(
      'JobQuote(uint64 serviceId,uint32 jobIndex,uint256 priceWei,bytes32 optionsHash,address requester,' +
        'bytes32 inputsHash,uint64 issuedAt,uint64 expiresAt,bytes32 salt)',
    );
    expect(quoteTypedData.domain).toEqual({ name: 'Tollbook', version: '1' });
  });

  const otherValues: Omit<Quote, 'options' | 'isSummarised'> = {
    serviceId: 2,
    jobIndex: 1,
    priceWei: 10n ** 15n + 1n,
    requester: bytesOf('01', 20),
    inputsHash: bytesOf('01', 32),
    issuedAt: nowSecs + 1,
    expiresAt: nowSecs + 301,
    salt: bytesOf('5b', 32),
  };
  test('is the same whether the quote is recorded by itself or summarised', () => {
    expect(quoteDigest({ ...quote, isSummarised: true })).toBe(quoteDigest(quote));
  });

  test.each(Object.entries(otherValues))('changes with %s', (name, value) => {
    expect(quoteDigest({ ...quote, [name]: value })).not.toBe(quoteDigest(quote));
  });

  const otherTerms: SettlementOption = {
    network: 'eip155:8453',
    transferMethod: 'permit2',
    asset: bytesOf('a2', 20),
    symbol: 'EURC',
    decimals: 7,
    amount: option.amount + 1n,
    payTo: bytesOf('b3', 20),
    eip712Name: 'USDC',
    eip712Version: '1',
  };
  test.each(Object.entries(otherTerms))("changes with an option's %s", (name, value) => {
    const changed = { ...quote, options: [{ ...option, [name]: value }] };
    expect(quoteDigest(changed)).not.toBe(quoteDigest(quote));
  });

  test('changes with one more option, and with their order', () => {
    const digests = [[option], [option, otherTerms], [otherTerms, option]].map((options) =>
      quoteDigest({ ...quote, options }),
    );
    expect(new Set(digests).size).toBe(3);
  });

  test("does not depend on which list the options are in, nor on their keys' order", () => {
    const turned = Object.fromEntries(Object.entries(option).toReversed()) as unknown as SettlementOption;
    expect(quoteDigest({ ...quote, options: [turned] })).toBe(quoteDigest(quote));
  });

  test('changes with any two fields swapped that have one type', () => {
    const { issuedAt, expiresAt, salt, inputsHash } = quote;
    const digests = [
      quote,
      { ...quote, issuedAt: expiresAt, expiresAt: issuedAt },
      { ...quote, salt: inputsHash, inputsHash: salt },
    ].map(quoteDigest);
    expect(new Set(digests).size).toBe(3);
  });
});

describe('a quote on record', () => {
  test('has a digest that can be computed only from the record', () => {
    fc.assert(
      fc.property(anyQuote, (any) => {
        expect(recordedDigest(recorded(quoteToData(any)))).toBe(quoteDigest(any));
      }),
    );
  });

  test('has the same digest where only one of its options is on record in full, whichever that is', () => {
    fc.assert(
      fc.property(anyQuote, fc.nat(), (any, at) => {
        const one = any.options[at % any.options.length] ?? option;
        const hashes = any.options.map(optionHash);
        const data = recorded(provenQuoteToData(any, one, hashes));
        expect(recordedDigest(data)).toBe(quoteDigest(any));
        expect(quoteDigestOf(any, hashes)).toBe(quoteDigest(any));
        expect(fullOptions(data)).toContainEqual(optionJson(one));
      }),
    );
  });

  test("keeps an option's terms", () => {
    fc.assert(
      fc.property(anyOption, (any) => {
        expect(optionFromJson(optionJson(any))).toEqual(any);
      }),
    );
  });
});
