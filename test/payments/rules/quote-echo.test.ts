import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  authenticQuote,
  type EchoedTerms,
  quoteEcho,
  quoteKeysOf,
  type QuoteRealm,
  writeQuoteEcho,
} from '../../../src/payments/rules/quote-echo.ts';
import {
  optionJson,
  type Quote,
  quoteDigest,
  recordedDigest,
  type SettlementOption,
} from '../../../src/payments/rules/quote.ts';
import type { JobId } from '../../../src/base/values/job.ts';
import { anyHash, anyOption, anyQuote, bytesOf, option } from './support.ts';

const secret = 'a-key-of-quotes-of-thirty-two-characters';
const [keys, otherKeys] = [quoteKeysOf([secret]), quoteKeysOf(['another-key-of-thirty-two-characters-1'])];
const realm: QuoteRealm = { ledgerId: 'ab', generation: 1, lane: 1, origin: 'https://jobs.example' };

/** What a payer echoes of an offer of this option. */
function echoed(quote: Quote, of: SettlementOption, by = keys, where = realm): EchoedTerms {
  const digest = quoteDigest(quote);
  const { network, transferMethod, asset, payTo, amount, eip712Name, eip712Version } = of;
  return {
    network,
    transferMethod,
    asset,
    payTo,
    amount: String(amount),
    eip712Name,
    eip712Version,
    quoteDigest: digest,
    // as JSON over the wire
    echo: quoteEcho.parse(JSON.parse(JSON.stringify(writeQuoteEcho(by, where, quote, digest, of)))),
  };
}

const anyOffer = fc
  .tuple(anyQuote, fc.nat())
  .map(([quote, at]) => ({ quote, of: quote.options[at % quote.options.length] ?? option }));

describe('a quote that a payment echoes', () => {
  test('is authentic for each of its options, and has its digest', () => {
    fc.assert(
      fc.property(anyOffer, ({ quote, of }) => {
        const found = authenticQuote(keys, realm, quote, echoed(quote, of));
        expect(found && recordedDigest(found.data)).toBe(quoteDigest(quote));
        expect(found?.data.options).toContainEqual(optionJson(of));
        expect(found).toMatchObject({
          keyId: keys[0].id,
          data: { price_wei: String(quote.priceWei), expires_at: quote.expiresAt },
        });
        expect(found?.data.summarised).toBe(quote.isSummarised ? true : undefined);
      }),
    );
  });

  test('is authentic however the payee is spelt', () => {
    const quote = sample();
    const terms = echoed(quote, option);
    const payTo = `0x${terms.payTo.slice(2).toUpperCase()}`;
    expect(authenticQuote(keys, realm, quote, { ...terms, payTo })).toBeDefined();
  });

  const quoted = sample();
  const terms = echoed(quoted, option);
  const ownJob: JobId = { serviceId: quoted.serviceId, jobIndex: quoted.jobIndex };
  const accepts = (changed: EchoedTerms, job = ownJob): boolean =>
    authenticQuote(keys, realm, job, changed) !== undefined;

  test.each<[string, Partial<EchoedTerms>]>([
    ['network', { network: 'eip155:1' }],
    ['asset', { asset: bytesOf('99', 20) }],
    ['payee', { payTo: bytesOf('99', 20) }],
    ['amount', { amount: '1' }],
    ['spelling of the amount', { amount: `0${terms.amount}` }],
    ['token name', { eip712Name: 'Other Coin' }],
    ['missing token version', { eip712Version: undefined }],
    ['digest', { quoteDigest: bytesOf('99', 32) }],
  ])('is refused with another %s', (_, change) => {
    expect(accepts({ ...terms, ...change })).toBe(false);
  });

  test.each<[string, Partial<EchoedTerms['echo']>]>([
    ['price', { priceWei: '1' }],
    // its low bits are the price's
    ['price of more than 256 bits', { priceWei: String(quoted.priceWei + 2n ** 256n) }],
    ['requester', { requester: bytesOf('99', 20) }],
    ['hash of inputs', { inputsHash: bytesOf('99', 32) }],
    ['time of issue', { issuedAt: quoted.issuedAt + 1 }],
    ['expiry', { expiresAt: quoted.expiresAt + 1 }],
    ['salt', { salt: bytesOf('99', 32) }],
    ['symbol', { symbol: 'EURC' }],
    ['number of decimals', { decimals: 18 }],
    ['credit', { creditMicros: '1000000' }],
    ['list of options', { optionHashes: [...terms.echo.optionHashes, bytesOf('99', 32)] }],
    ['order of options', { optionHashes: terms.echo.optionHashes.toReversed() }],
    ['way of being counted', { summarised: true }],
    ['key id', { keyId: otherKeys[0].id }],
    ['MAC', { mac: echoed(quoted, option, otherKeys).echo.mac }],
    ['MAC, cut short', { mac: terms.echo.mac.slice(0, 20) }],
  ])('is refused with another %s', (_, change) => {
    expect(accepts({ ...terms, echo: { ...terms.echo, ...change } })).toBe(false);
  });

  test('is refused for another job', () => {
    expect(accepts(terms)).toBe(true);
    expect(accepts(terms, { ...ownJob, serviceId: quoted.serviceId + 1 })).toBe(false);
    expect(accepts(terms, { ...ownJob, jobIndex: quoted.jobIndex + 1 })).toBe(false);
  });

  test.each<[string, Partial<QuoteRealm>]>([
    ['ledger', { ledgerId: 'ac' }],
    ['generation', { generation: 2 }],
    ['lane', { lane: 2 }],
    ['public address', { origin: 'https://staging.example' }],
  ])('is refused in another %s', (_, change) => {
    expect(authenticQuote(keys, { ...realm, ...change }, quoted, terms)).toBeUndefined();
  });

  test('is refused with the MAC of another option of the same quote', () => {
    const [, second] = quoted.options;
    if (!second) throw new Error('no second option');
    const { mac } = echoed(quoted, second).echo;
    expect(accepts({ ...terms, echo: { ...terms.echo, mac } })).toBe(false);
  });

  test('is refused with any other terms: a quote forged by an attacker who knows all but the key', () => {
    fc.assert(
      fc.property(anyOffer, anyHash, ({ quote, of }, salt) => {
        const forged = { ...quote, salt };
        fc.pre(quoteDigest(forged) !== quoteDigest(quote));
        const { mac } = echoed(quote, of).echo;
        const own = echoed(forged, of, otherKeys);
        const claimed = { ...own, echo: { ...own.echo, keyId: keys[0].id, mac } };
        expect(authenticQuote(keys, realm, quote, claimed)).toBeUndefined();
      }),
    );
  });

  test('is authentic while its key is one of two, and not once that is dropped', () => {
    const rotated = quoteKeysOf(['the-next-key-of-thirty-two-characters', secret]);
    expect(authenticQuote(rotated, realm, quoted, terms)).toMatchObject({ keyId: keys[0].id });
    expect(authenticQuote(quoteKeysOf(['the-next-key-of-thirty-two-characters']), realm, quoted, terms)).toBe(
      undefined,
    );
  });
});

/** A quote of `option` and another one, with values that no change of a test has. */
function sample(): Quote {
  const [quote] = fc.sample(anyQuote, { numRuns: 1, seed: 7 });
  const [other] = fc.sample(anyOption, { numRuns: 1, seed: 7 });
  if (!quote || !other) throw new Error('no sample');
  return {
    ...quote,
    priceWei: 10n ** 15n,
    isSummarised: false,
    issuedAt: 1_800_000_000,
    expiresAt: 1_800_000_300,
    options: [option, other],
  };
}
