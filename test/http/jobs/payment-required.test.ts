import fc from 'fast-check';
import { expect, test } from 'vitest';
import { refusals } from '../../../src/domain/errors/refusal.ts';
import { discoveryOf, plainDiscovery } from '../../../src/domain/payments/discovery.ts';
import { offeredExtensions } from '../../../src/domain/payments/payment-identifier.ts';
import type { SettlementOption } from '../../../src/domain/payments/quote.ts';
import { createOffers } from '../../../src/jobs/offers.ts';
import { paymentRequiredText } from '../../../src/http/jobs/payment-required.ts';
import type { Caip2 } from '../../../src/domain/values/primitives.ts';
import type { PaymentRequired } from '../../../src/jobs/answer.ts';
import { anyHash, anyOption, option as usdc } from '../../domain/payments/support.ts';

const settings = { acceptedTokens: [], maxTimeoutSecs: 300, paymentIdentifier: 'optional' } as const;
const origin = 'https://gateway.example';
const context = {
  settings,
  offers: createOffers({ info: () => {}, warn: () => {}, error: () => {} }),
  publicUrl: () => origin,
};

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
  scheme: 'exact',
  network: option.network,
  amount: String(option.amount),
  asset: option.asset,
  payTo: option.payTo,
  maxTimeoutSeconds: settings.maxTimeoutSecs,
  extra: {
    name: option.eip712Name,
    version: option.eip712Version,
    assetTransferMethod: option.transferMethod,
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
          ...offeredExtensions(settings.paymentIdentifier),
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
  );
});

test('beside more tokens the job is described by less: without schemas, without an entry, without a description; the header stays under 6 KiB', () => {
  const contentType = 'application/json';
  const inputSchema = { type: 'object', description: 'x'.repeat(300) };
  const entries = {
    whole: discoveryOf({ contentType, inputSchema, outputSchema: inputSchema }),
    plain: plainDiscovery(contentType),
  };
  const long = 'é'.repeat(500);
  const offered = (count: number) => {
    const options = Array.from({ length: count }, () => usdc);
    const [digest, secret] = [`0x${'a'.repeat(64)}`, 'b'.repeat(43)] as const;
    const job = { serviceId: 1, jobIndex: 0, description: long, discovery: entries.whole };
    const input = { content_type: contentType };
    const quote = { ...job, digest, secret, options, input, expiresAt: 1_700_000_000, echoes: undefined };
    const reason = 'r'.repeat(200);
    const { header } = paymentRequiredText(context, {
      kind: 'payment_required',
      code: 'payment_invalid',
      reason,
      quote,
    });
    const { resource, accepts, extensions } = JSON.parse(header);
    const entry = JSON.stringify(extensions.bazaar);
    expect(accepts).toHaveLength(count);
    return {
      isUnder6KiB: Buffer.from(header).toString('base64').length < 6_144,
      isDescribed: resource.description === long,
      entry:
        Object.entries(entries).find(([, known]) => JSON.stringify(known?.extension) === entry)?.[0] ??
        'none',
    };
  };
  const answers = [1, 2, 3, 4, 5, 6].map(offered);
  expect(answers.every(({ isUnder6KiB }) => isUnder6KiB)).toBe(true);
  const steps = answers.map(({ isDescribed, entry }) => `${entry}${isDescribed ? ', described' : ''}`);
  expect([...new Set(steps)]).toEqual(['whole, described', 'plain, described', 'none, described', 'none']);
});

test('a client of version 1 that no option is for reads that it needs version 2; a client of version 2 does not', () => {
  const [answer] = fc.sample(anyAnswer, 1);
  if (!answer) throw new Error('no sample');
  const on = (network: Caip2) => ({
    ...answer,
    quote: { ...answer.quote, options: answer.quote.options.map((option) => ({ ...option, network })) },
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
  const [answer] = fc.sample(anyAnswer, 1);
  if (!answer) throw new Error('no sample');
  paymentRequiredText(context, answer);
  const moved = paymentRequiredText({ ...context, publicUrl: () => 'https://moved.example' }, answer);
  expect(moved.header).toContain('https://moved.example/');
  const slower = { ...settings, maxTimeoutSecs: settings.maxTimeoutSecs + 1 };
  const later = paymentRequiredText({ ...context, settings: slower }, answer);
  expect(later.header).toContain(`"maxTimeoutSeconds":${slower.maxTimeoutSecs}`);
});
