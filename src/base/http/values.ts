import { z } from 'zod';
import { maxJobIndex } from '../values/job.ts';

/** The wire formats of values that many bodies have. */
export const hex32 = z
  .string()
  .regex(/^0x[0-9a-f]{64}$/)
  .meta({
    description: '32 bytes in lower-case hex.',
    examples: ['0x2c624232cdd221771294dfbb310aca000a0df6ac8b66b696d90ef06fdefb64a3'],
  });

export const quoteDigest = hex32.meta({
  description: 'The EIP-712 digest of the quote, which identifies it.',
  examples: ['0x19581e27de7ced00ff1ce50b2047e7a567c76b1cbaebabe5ef03f7c3017bb5b7'],
});

export const address = z
  .string()
  .regex(/^0x[0-9a-f]{40}$/)
  .meta({ description: 'An address, lower case.', examples: ['0x833589fcd6edb6e08f4c7c32d4f71b54bda02913'] });

export const network = z
  .string()
  .regex(/^eip155:[1-9]\d{0,15}$/)
  .meta({ description: "The chain's CAIP-2 name.", examples: ['eip155:8453'] });

export const symbol = z
  .string()
  .regex(/^[A-Za-z0-9._-]{1,16}$/)
  .meta({ description: "The token's symbol.", examples: ['USDC'] });

export const decimals = z.int().min(0).max(36).describe("The token's decimal places.");

export const atoms = z
  .string()
  .regex(/^(?:0|[1-9]\d{0,77})$/)
  .meta({ description: "In the token's smallest unit, as a decimal string.", examples: ['3264'] });

export const wei = z
  .string()
  .regex(/^[1-9]\d{0,77}$/)
  .meta({ description: 'In wei, as a decimal string.', examples: ['1000000000000000'] });

/** RFC 3339 in UTC with milliseconds, from the clock of the database. */
export const time = z
  .string()
  .regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  .meta({ format: 'date-time', examples: ['2026-11-20T06:30:00.000Z'] });

/** A number in a query. An empty one is refused: it would be read as 0. */
export const queryNumber = z.preprocess((text) => (text === '' ? Number.NaN : text), z.coerce.number());

export const count = z.int().min(0);

export const serviceId = z
  .int()
  .min(0)
  .meta({ description: 'The service.', examples: [1] });
export const jobIndex = z
  .int()
  .min(0)
  .max(maxJobIndex)
  .meta({ description: "The job, among its service's jobs.", examples: [0] });
export const jobName = { service_id: serviceId, job_index: jobIndex };

export const callId = z
  .int()
  .min(1)
  .meta({ description: 'The number of the call.', examples: [42] });

export const attempt = z.int().min(1).describe('The number of the attempt, from 1.');

export const url = z
  .string()
  .regex(/^https?:\/\//)
  .meta({ format: 'uri', examples: ['https://jobs.example/x402'] });

export const contentType = z
  .string()
  .nullable()
  .describe('The content type of the request; null if it had no content type.');
