import { extractOfferPayload } from '@x402/extensions/offer-receipt';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { refusals } from '../../../src/base/errors/refusal.ts';
import { discoveryOf, plainDiscovery } from '../../../src/base/values/discovery.ts';
import { offeredExtensions } from '../../../src/base/values/payment-identifier.ts';
import { type OfferKey, offerKeysOf } from '../../../src/payments/rules/offer-key.ts';
import { signatureFormats } from '../../../src/base/values/signature-format.ts';
import type { SettlementOption } from '../../../src/payments/rules/quote.ts';
import { createOffers } from '../../../src/jobs/use-cases/offers.ts';
import { paymentRequiredText } from '../../../src/jobs/http/payment-required.ts';
import type { RotatingSecret } from '../../../src/base/values/rotating-secret.ts';
import type { Caip2 } from '../../../src/base/values/primitives.ts';
import type { PaymentRequired } from '../../../src/jobs/use-cases/answer.ts';
import { anyHash, anyOption, option as usdc } from '../../payments/rules/support.ts';
import { propertyRuns } from '../../support/property-runs.ts';

const settings = {
  acceptedTokens: [],
  maxTimeoutSecs: 300,
  quoteTtlSecs: 300,
} as const;
const origin = 'https://gateway.example';
const context = {
  settings,
  offers: createOffers({ info: () => {}, warn: () => {}, error: () => {} }),
  publicUrl: () => origin,
  offerKeys: undefined,
};

const jwsKeys = offerKeysOf('jws', [Buffer.alloc(32, 7)]);

const anyText = fc.string({ unit: 'binary', maxLength: 30 });
const anyAnswer: fc.Arbitrary<PaymentRequired> = fc.record({
  kind: fc.constant('payment_required' as const),
  code: fc.constantFrom('payment_required' as const, 'payment_invalid' as const),
  reason: fc.option(anyText, { nil: undefined }),
  quote: fc.record({
    serviceId: fc.nat(),
    jobIndex: fc.nat(0xffff_ffff),
    digest: anyHash,
    secret: fc.base64String({ maxLength: 43 }),
    expiresAt: fc.integer({ min: 1_700_000_000, max: 4_000_000_000 }),
    options: fc.array(
      fc.tuple(anyOption, anyText).map(([option, name]) => ({ ...option, eip712Name: name })),
      { minLength: 1, maxLength: 3 },
    ),
    echoes: fc.constant(undefined),
    input: fc.option(fc.record({ content_type: anyText }), { nil: undefined }),
    description: anyText,
    discovery: fc.option(fc.constant(plainDiscovery(undefined)), { nil: undefined }),
  }),
});

const offerOf = (option: SettlementOption, { digest, secret }: PaymentRequired['quote']) => ({
  scheme: option.transferMethod === 'upto' ? 'upto' : 'exact',
  network: option.network,
  amount: String(option.amount),
  asset: option.asset,
  payTo: option.payTo,
  maxTimeoutSeconds: settings.maxTimeoutSecs,
  extra: {
    name: option.eip712Name,
    version: option.eip712Version,
    assetTransferMethod: option.transferMethod === 'upto' ? 'permit2' : option.transferMethod,
    paymentFlow: 'upfront',
    quoteDigest: digest,
    offerSecret: secret,
  },
});

test('a 402 is made of fixed and new parts, and is the JSON of the whole', () => {
  fc.assert(
    fc.property(anyAnswer, (answer) => {
      const { code, reason, quote } = answer;
      const { sentence } = refusals[code];
      const error = reason === undefined ? sentence : `${sentence} (${reason})`;
      const header = {
        x402Version: 2,
        error,
        resource: {
          url: `${origin}/x402/jobs/${quote.serviceId}/${quote.jobIndex}`,
          description: quote.description,
          mimeType: 'application/json',
        },
        accepts: quote.options.map((option) => offerOf(option, quote)),
        extensions: {
          ...offeredExtensions,
          ...(quote.discovery && { bazaar: quote.discovery.extension }),
        },
      };
      // the second answer has the same options, whose parts were kept
      for (const text of [paymentRequiredText(context, answer), paymentRequiredText(context, answer)]) {
        expect(text.header).toBe(JSON.stringify(header));
        expect(JSON.stringify(JSON.parse(text.body))).toBe(text.body);
        expect(JSON.parse(text.body)).toMatchObject({
          x402Version: 1,
          error: expect.stringMatching(
            new RegExp(`^${RegExp.escape(error)}( x402 version 1 can name .*)?$`, 's'),
          ),
          code,
          ...(reason === undefined ? {} : { reason }),
          quote_digest: quote.digest,
          quote_expires_at: new Date(quote.expiresAt * 1_000).toISOString(),
          ...(quote.input ? { input: quote.input } : {}),
        });
      }
    }),
    propertyRuns(),
  );
});

test('with more tokens the job’s description is shorter: without schemas, without an entry, without a description; the header stays under 6 KiB', () => {
  const contentType = 'application/json';
  const inputSchema = { type: 'object', description: 'x'.repeat(300) };
  const entries = {
    whole: discoveryOf({ contentType, inputSchema, outputSchema: inputSchema }),
    plain: plainDiscovery(contentType),
  };
  const long = 'é'.repeat(500);
  const offered = (count: number, offerKeys?: RotatingSecret<OfferKey>, description = long) => {
    const options = Array.from({ length: count }, () => usdc);
    const [digest, secret] = [`0x${'a'.repeat(64)}`, 'b'.repeat(43)] as const;
    const job = { serviceId: 1, jobIndex: 0, description, discovery: entries.whole };
    const input = { content_type: contentType };
    const quote = { ...job, digest, secret, options, input, expiresAt: 1_700_000_000, echoes: undefined };
    const reason = 'r'.repeat(200);
    const answer = { kind: 'payment_required', code: 'payment_invalid', reason, quote } as const;
    const { header } = paymentRequiredText({ ...context, offerKeys }, answer);
    const { resource, accepts, extensions } = JSON.parse(header);
    const entry = JSON.stringify(extensions.bazaar);
    expect(accepts).toHaveLength(count);
    return {
      isUnder6KiB: Buffer.from(header).toString('base64').length < 6_144,
      isDescribed: resource.description === description,
      signed: extensions['offer-receipt']?.info.offers.length ?? 0,
      entry:
        Object.entries(entries).find(([, known]) => JSON.stringify(known?.extension) === entry)?.[0] ??
        'none',
    };
  };
  const answers = [1, 2, 3, 4, 5, 6].map((count) => offered(count));
  expect(answers.every(({ isUnder6KiB }) => isUnder6KiB)).toBe(true);
  const steps = answers.map(({ isDescribed, entry }) => `${entry}${isDescribed ? ', described' : ''}`);
  expect([...new Set(steps)]).toEqual(['whole, described', 'plain, described', 'none, described', 'none']);
  for (const format of signatureFormats) {
    const keys = offerKeysOf(format, [Buffer.alloc(32, 7)]);
    const signing = [1, 2, 3, 4, 5, 6].map((count) => offered(count, keys, 'Draws what you describe'));
    expect(signing.every(({ isUnder6KiB, isDescribed }) => isUnder6KiB && isDescribed)).toBe(true);
    // the entry gives way to them, and they are all there or not at all
    const beside = signing.map(({ signed, entry }) => `${signed} signed, ${entry}`);
    expect(beside.slice(0, 2)).toEqual(['1 signed, whole', '2 signed, plain']);
    expect(beside[2]).toBe({ eip712: '3 signed, none', jws: '0 signed, whole' }[format]);
    expect(beside.slice(3)).toEqual(['0 signed, whole', '0 signed, plain', '0 signed, plain']);
  }
});

test('offers are signed once for all quotes of a list that expire within half a minute, end with the first of them and never after their quote', async () => {
  let signatures = 0;
  const [key] = jwsKeys;
  const counting: RotatingSecret<OfferKey> = [
    { ...key, sign: (...given) => (signatures++, key.sign(...given)) },
  ];
  const [answer] = fc.sample(anyAnswer, propertyRuns(1));
  if (!answer) throw new Error('no sample');
  const options = [usdc];
  const signedAt = (expiresAt: number, named: Partial<PaymentRequired['quote']> = {}) => {
    const quote = { ...answer.quote, options, expiresAt, ...named };
    const { header } = paymentRequiredText({ ...context, offerKeys: counting }, { ...answer, quote });
    const [offer] = JSON.parse(header).extensions['offer-receipt'].info.offers;
    return [extractOfferPayload(offer).validUntil, signatures];
  };
  const start = 1_700_000_000;
  expect([start, start + 1, start + 30, start + 31, start + 30].map((at) => signedAt(at))).toEqual([
    [start, 1],
    [start, 1],
    [start, 1],
    [start + 31, 2],
    // a clock that was set back
    [start + 30, 3],
  ]);
  // a quote that an address names has its own list in each answer
  const named = () =>
    signedAt(start + 7, { isNamed: true, options: [{ ...usdc }], digest: `0x${'7'.repeat(64)}` });
  expect([named(), named()]).toEqual([
    [start + 7, 4],
    [start + 7, 4],
  ]);
});

test('a client of version 1 that no option is for reads that it needs version 2; a client of version 2 does not', () => {
  const [answer] = fc.sample(anyAnswer, propertyRuns(1));
  if (!answer) throw new Error('no sample');
  const on = (network: Caip2) => ({
    ...answer,
    quote: {
      ...answer.quote,
      options: answer.quote.options.map((option) => ({
        ...option,
        network,
        transferMethod: 'eip3009' as const,
      })),
    },
  });
  const unnamed = paymentRequiredText(context, on('eip155:31337'));
  expect(JSON.parse(unnamed.body)).toMatchObject({
    accepts: [],
    error: expect.stringContaining('version 2'),
  });
  expect(JSON.parse(unnamed.header).error).not.toContain('version 2');
  const named = JSON.parse(paymentRequiredText(context, on('eip155:1')).body);
  expect(named.error).not.toContain('version 2');
});

test('another configuration or public address is not answered with the parts of the one before', () => {
  const [answer] = fc.sample(anyAnswer, propertyRuns(1));
  if (!answer) throw new Error('no sample');
  paymentRequiredText(context, answer);
  const moved = paymentRequiredText({ ...context, publicUrl: () => 'https://moved.example' }, answer);
  expect(moved.header).toContain('https://moved.example/');
  const slower = { ...settings, maxTimeoutSecs: settings.maxTimeoutSecs + 1 };
  const later = paymentRequiredText({ ...context, settings: slower }, answer);
  expect(later.header).toContain(`"maxTimeoutSeconds":${slower.maxTimeoutSecs}`);
});
