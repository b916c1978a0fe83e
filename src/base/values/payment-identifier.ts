import { z } from 'zod';

/** The x402 extension by which a payer gives a payment its own id, to pay for one request once. */
export const paymentIdentifierKey = 'payment-identifier';

/** The id that a payment carries in the extension; `malformed` for a value that is not an id. */
export type PaymentIdentifier = { readonly id: string } | 'malformed';

export const identifierForm = /^[A-Za-z0-9_-]{16,128}$/;

const carried = z.object({ info: z.object({ id: z.string().regex(identifierForm).nullish() }) });

/** Reads a payment's entry of the extension. Clients without support for it echo the offer's entry, which has no id. */
export function readIdentifier(entry: unknown): PaymentIdentifier | undefined {
  if (entry === undefined || entry === null) return undefined;
  const parsed = carried.safeParse(entry);
  if (!parsed.success) return 'malformed';
  const { id } = parsed.data.info;
  return typeof id === 'string' ? { id } : undefined;
}

/** The extensions of a version 2 offer. An id is never required: version 1 has none, and a payment identifies its request by itself. */
export const offeredExtensions = {
  [paymentIdentifierKey]: {
    info: { required: false },
    schema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: {
        required: { type: 'boolean' },
        id: { type: 'string', minLength: 16, maxLength: 128, pattern: '^[A-Za-z0-9_-]+$' },
      },
      required: ['required'],
    },
  },
} as const;
