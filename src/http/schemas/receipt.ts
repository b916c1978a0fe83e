import { z } from 'zod';
import type { ReceiptState } from '../../domain/payments/quote-state.ts';
import { paymentSummary } from './payment.ts';
import { callId, contentType, jobIndex, quoteDigest, serviceId, time } from './values.ts';

const unnamed = 'Absent for a recovered payment whose payer has not asked for delivery.';

const states = [
  'quoted',
  'authorized',
  'settling',
  'settlement_unknown',
  'settlement_failed',
  'settled',
  'enqueued',
  'delivered',
  'completed',
  'dead_lettered',
  'refused',
  'expired',
  'refunded',
] as const satisfies readonly ReceiptState[];

export const receipt = z
  .strictObject({
    quote_digest: quoteDigest,
    state: z.enum(states),
    paid: z
      .boolean()
      .nullable()
      .meta({ description: 'Whether money moved; null while the outcome is unknown.' }),
    service_id: serviceId.optional().meta({ description: unnamed }),
    job_index: jobIndex.optional().meta({ description: unnamed }),
    quote_expires_at: time
      .optional()
      .meta({ description: 'Absent for a recovered payment: its quote is lost.' }),
    call_id: callId.optional(),
    payment: paymentSummary.optional(),
    events: z
      .array(
        z.strictObject({
          type: z
            .string()
            .regex(/^[a-z_]+$/)
            .meta({ description: 'Later versions may add types.', examples: ['payment_settled'] }),
          at: time,
        }),
      )
      .meta({ description: 'All events of the quote, in order.' }),
    result: z
      .strictObject({ content_type: contentType, body_base64: z.base64() })
      .nullable()
      .optional()
      .meta({
        description: "The runner's result; null until there is one. Only with the receipt token.",
      }),
  })
  .meta({ description: 'The state of a quote, its payment and its call.' });
export type Receipt = z.infer<typeof receipt>;
