import { z } from 'zod';
import { authModes, invocationModes } from '../../../base/values/job.ts';
import type { PaymentRequired } from '../../use-cases/answer.ts';
import { noOfferReasons } from '../../use-cases/offers.ts';
import { next } from '../../../accounts/http/schemas/list-cursor.ts';
import { result } from './receipt.ts';
import { paymentSummary, requirementV1, unquotedV2, x402Scheme } from '../../../payments/http/payment.ts';
import {
  address,
  atoms,
  callId,
  decimals,
  jobIndex,
  jobName,
  network,
  quoteDigest,
  serviceId,
  symbol,
  time,
  url,
  wei,
} from '../../../base/http/values.ts';

export const jobInput = z
  .strictObject({
    content_type: z.string().meta({ examples: ['application/json'] }),
    json_schema: z.record(z.string(), z.unknown()).optional().describe('JSON Schema, draft 2020-12.'),
  })
  .describe('The input that the job accepts; absent if it accepts any.');

const endpoint = url.describe('The URL at which the job is paid for.');

const notOffered = z
  .array(z.strictObject({ network, asset: address, symbol, reason: z.literal('no_current_rate') }))
  .readonly()
  .describe('Accepted tokens that cannot be paid with now, and why. Absent if there is none.');

export const price = z
  .strictObject({
    ...jobName,
    name: z.string().optional().describe('What the operator calls the job.'),
    description: z.string().optional().describe('What it does, in one line.'),
    methods: z
      .array(z.string())
      .optional()
      .describe(
        'Of a route: each request with one of them to the URL is sold, whose `:name` stands for one segment of a path and `*` for its rest, and answered with the resource. Absent for other jobs, which are bought by POST.',
      ),
    price: z
      .string()
      .describe('The price as a person reads it: in dollars, or in ether (10^18 wei).')
      .meta({ examples: ['0.01 USD'] }),
    price_wei: wei.optional().describe('In wei; absent for a price in dollars.'),
    price_depends_on_request: z
      .literal(true)
      .optional()
      .describe('Each request has its own price, which its offer says; this one is the highest.'),
    invocation_mode: z.enum(invocationModes).exclude(['disabled']),
    auth_mode: z.enum(authModes).optional().describe('How callers of a restricted job are authenticated.'),
    input: jobInput.optional(),
    settlement_options: z
      .array(
        z.strictObject({
          protocol: z.literal('x402'),
          scheme: x402Scheme,
          network,
          asset: address,
          symbol,
          decimals,
          amount: atoms,
          pay_to: address,
          x402_endpoint: endpoint,
        }),
      )
      .describe('Empty if no token can be offered now: `unavailable` says why.'),
    not_offered: notOffered.optional(),
    unavailable: z.strictObject({ reason: z.enum(noOfferReasons) }).optional(),
    x402_endpoint: endpoint,
  })
  .describe('The current price of a job in each accepted token.');

/** The most jobs of one page: the schemas of inputs may be long. */
const mostJobs = 100;

/** Described only: the paid flow reads it itself, and refuses a malformed one with an offer. */
export const payQuery = z.object({
  quote: z
    .string()
    .optional()
    .describe(
      'The token of a quote that a pricing service issued. A request without a payment gets exactly that quote as its offer.',
    ),
});

export const catalogueQuery = z.strictObject({
  cursor: z.string().max(64).optional().describe('`next` of the previous page.'),
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(mostJobs)
    .default(mostJobs)
    .describe('The most jobs of one page.'),
});

export const catalogue = z
  .strictObject({
    jobs: z.array(price).describe('By service and job index.'),
    next,
  })
  .describe('The jobs that are sold, each as at its own `…/price`.');

export const wellKnown = z
  .strictObject({
    version: z.literal(1).describe('Of this document.'),
    x402Version: z.literal(2),
    resources: z.array(url).describe('The URLs of the jobs, at most 1,000; each takes `POST`.'),
    instructions: z.string(),
    items: z
      .array(
        z.strictObject({
          resource: url,
          type: z.literal('http'),
          method: z.literal('POST'),
          x402Version: z.literal(2),
          name: z.string().optional(),
          description: z.string().optional(),
          mimeType: z.string(),
          accepts: z
            .array(unquotedV2)
            .describe('The present prices. They name no quote, so only those of a 402 can be paid.'),
        }),
      )
      .describe('The same jobs, as discovery services list resources.'),
    catalogue: url,
    openapi: url,
    llms: url,
  })
  .describe('The resources of this server that are paid for by x402.');

export const didDocument = z
  .strictObject({
    '@context': z.array(url),
    id: z.string().describe('The DID: `did:web:` and the host of this address.'),
    verificationMethod: z.array(
      z.strictObject({
        id: z.string(),
        type: z.string(),
        controller: z.string(),
        publicKeyJwk: z.record(z.string(), z.string()).optional(),
        blockchainAccountId: z.string().optional().describe('The account of an `eip712` signature.'),
      }),
    ),
    assertionMethod: z.array(z.string()).describe('The ids of all keys.'),
  })
  .describe('The public keys of signed offers and receipts.');

const paymentCodes = [
  'payment_required',
  'payment_invalid',
  'wallet_not_deployed',
  'quote_expired',
  'quote_ended',
] as const satisfies readonly PaymentRequired['code'][];

export const paymentRequired = z
  .strictObject({
    x402Version: z.literal(1),
    error: z.string().describe('One sentence for a person.'),
    accepts: z.array(requirementV1).describe('One token of each network that has a name in version 1.'),
    code: z.enum(paymentCodes),
    reason: z
      .string()
      .regex(/^[a-z0-9_]{1,100}$/)
      .optional()
      .meta({
        description:
          'The machine-readable reason why the payment was rejected, from the gateway or the facilitator.',
        examples: ['authorization_expired'],
      }),
    quote_digest: quoteDigest,
    quote_expires_at: time,
    input: jobInput.optional(),
    not_offered: notOffered.optional(),
  })
  .describe('The offer: x402 version 1 in this body, version 2 in `PAYMENT-REQUIRED`.');

export const accepted = z
  .strictObject({
    status: z.literal('accepted'),
    receipt: quoteDigest.describe('Equals `quote_digest`.'),
    quote_digest: quoteDigest,
    receipt_token: z.string().describe('Gives access to the result on the receipt.'),
    receipt_url: url,
    call_id: callId,
    ...jobName,
    payment: paymentSummary,
    callback_secret: z
      .string()
      .optional()
      .meta({
        description:
          'Verifies the callback as Standard Webhooks says. Only for a request with `X-NET-CALLBACK-URL`.',
        examples: ['whsec_…'],
      }),
  })
  .describe('The payment is settled and the call is enqueued, not yet completed.');
export type Accepted = z.infer<typeof accepted>;

export const completed = accepted
  .extend({
    status: z.literal('completed'),
    result: result.nullable().describe("The runner's result; null if it gave none, or its life has ended."),
  })
  .describe('What a 202 says, and the result: the call was completed within the time of `Prefer`.');
export type Completed = z.infer<typeof completed>;

export const replayed = z
  .strictObject({ status: z.literal('accepted') })
  .describe(
    "The payment is known, and the request does not echo its offer's `offerSecret`: nothing else is said about it.",
  );
export type Replayed = z.infer<typeof replayed>;

const check = z.strictObject({
  name: z.enum(['caller', 'signature', 'nonce', 'permission']),
  passed: z.boolean(),
  detail: z.string().describe('One sentence for a person.'),
});

const dryRunFacts = {
  enabled: z.boolean().describe('Whether the job is sold now.'),
  mode: z.enum(invocationModes),
  auth_mode: z.enum(authModes).optional(),
  caller: address.optional(),
  asserted: z.literal(true).optional().describe('The request does not prove that it comes from this caller.'),
  checks: z.array(check),
  ...jobName,
};

export const dryRunAllowed = z
  .strictObject({ allowed: z.literal(true), ...dryRunFacts })
  .describe('The request would be allowed.');

/** Fields of a refused dry run besides `error` and `code`; those of later checks are absent. */
export const dryRunRefusal = {
  allowed: z.literal(false).optional(),
  enabled: dryRunFacts.enabled.optional(),
  mode: dryRunFacts.mode.optional(),
  auth_mode: dryRunFacts.auth_mode,
  caller: dryRunFacts.caller,
  asserted: dryRunFacts.asserted,
  checks: dryRunFacts.checks.optional(),
  service_id: serviceId.optional(),
  job_index: jobIndex.optional(),
};
