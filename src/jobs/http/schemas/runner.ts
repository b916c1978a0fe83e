import { z } from 'zod';
import { maxPriceChars } from '../../../base/values/answer-price.ts';
import { attempt, callId, contentType, hex32, jobName, time } from '../../../base/http/values.ts';

const leaseSecs = z
  .int()
  .min(5)
  .max(3_600)
  .meta({ description: 'How long the lease is valid, from now.', examples: [60] });
export const leaseIdExample = '6f1f4a0e-2b57-4c8e-9d3a-51f0c2a7e9b4';
const leaseId = z.uuid().meta({
  description: 'The lease, and its fencing token against earlier holders.',
  examples: [leaseIdExample],
});

export const leaseBody = z
  .strictObject({
    max: z
      .int()
      .min(1)
      .max(100)
      .meta({ description: 'The most calls to lease; fewer once their bodies have 16 MiB.', examples: [10] }),
    lease_secs: leaseSecs,
    wait_secs: z
      .int()
      .min(0)
      .max(30)
      .default(0)
      .meta({ description: 'How long to wait for the first call.', examples: [20] }),
    services: z
      .array(z.int().min(0))
      .min(1)
      .max(100)
      .optional()
      .describe("Some of the runner's services; all of them by default."),
  })
  .describe('How many calls the runner leases, and for how long.');

export const extendBody = z.strictObject({ lease_id: leaseId, lease_secs: leaseSecs });

const givenType = z.string().regex(/^[!-~][ -~]{0,199}$/);

export const completeBody = z.strictObject({
  lease_id: leaseId,
  result: z
    .strictObject({
      content_type: givenType.optional().meta({ examples: ['application/json'] }),
      body_base64: z.base64(),
    })
    .optional()
    .describe("The answer to the call, for the payer's receipt."),
  stored_result: z
    .strictObject({
      content_type: givenType.optional(),
      bytes: z
        .int()
        .min(1)
        .meta({ description: 'Of all parts together.', examples: [5_000_000] }),
      sha256: hex32.describe('Of all bytes.'),
    })
    .optional()
    .describe('In place of `result`: a large one, whose parts were sent before.'),
  price: z
    .string()
    .max(maxPriceChars)
    .optional()
    .meta({
      description:
        'Of a call by a route that charges what its answer costs: dollars, or wei as digits where the price of the route is in wei.',
      examples: ['0.006 USD'],
    }),
});
export type CompleteBody = z.infer<typeof completeBody>;

export const storedPart = z.strictObject({ status: z.literal('stored') });

export const progressBody = z.strictObject({
  lease_id: leaseId,
  fraction: z
    .number()
    .min(0)
    .max(1)
    .optional()
    .meta({ description: 'How much is done: 0 is nothing, 1 is all.', examples: [0.4] }),
  message: z
    .string()
    .max(200)
    .regex(/^\P{Cc}*$/u)
    .optional()
    .meta({ description: 'For the client that waits.', examples: ['rendering page 4 of 10'] }),
});

export const progressTaken = z.strictObject({
  status: z.enum(['reported', 'skipped']).describe('`skipped`: it came too soon after the last one.'),
});

export const failBody = z.strictObject({
  lease_id: leaseId,
  error: z.string().max(1_000).describe('The error, for the operator.'),
  retry: z
    .boolean()
    .describe('Whether the call may be tried again; otherwise it becomes a dead letter immediately.'),
  retry_after_secs: z
    .int()
    .min(0)
    .max(86_400)
    .optional()
    .describe(
      'The least time until it is tried again, an hour at most; the back-off may be longer. It has no effect without `retry`.',
    ),
});

export const leasedCall = z.strictObject({
  call_id: callId,
  lease_id: leaseId,
  attempt,
  ...jobName,
  metadata: z.record(z.string(), z.string()).meta({
    description: 'The headers of a pushed call, with their names in capitals.',
    examples: [{ 'X-X402-ORIGIN': 'x402', 'X-NET-IDEMPOTENCY-KEY': `0x${'5e'.repeat(32)}` }],
  }),
  content_type: contentType,
  body_base64: z.base64().describe('The bytes of the request, unchanged.'),
  lease_expires_at: time,
  traceparent: z
    .string()
    .optional()
    .meta({
      description:
        'Where the gateway traces requests: the span of this delivery (W3C Trace Context). Send it back as a header with the outcome.',
      examples: [`00-${'4b'.repeat(16)}-${'00f0'.repeat(4)}-01`],
    }),
});
export type LeasedCallJson = z.infer<typeof leasedCall>;

export const leases = z
  .strictObject({ calls: z.array(leasedCall) })
  .describe('The leased calls; empty if no call came due within `wait_secs`.');

export const extended = z.strictObject({ lease_expires_at: time });
export const completed = z.strictObject({ status: z.literal('completed') });
export const failed = z.strictObject({ status: z.literal('failed') });
