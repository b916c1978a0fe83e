import { z } from 'zod';
import { callId, count, jobName, quoteDigest, time } from './values.ts';

export const deadLettersQuery = z.strictObject({
  after: z.coerce
    .number()
    .int()
    .min(0)
    .default(0)
    .meta({ description: 'The last `call_id` of the previous page.' }),
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(1_000)
    .default(100)
    .meta({ description: 'The most items of a page.' }),
});

export const deadLetter = z.strictObject({
  call_id: callId,
  quote_digest: quoteDigest,
  ...jobName,
  attempts: count.meta({ description: 'How often the call was delivered or leased.' }),
  reason: z.string().nullable().meta({ description: 'Why the call is a dead letter, as in the ledger.' }),
  runner: z
    .string()
    .nullable()
    .meta({ description: 'The runner of the last attempt; null for a call that sells credit.' }),
  last_error: z.string().nullable().meta({
    description:
      "The runner's last words, with its status: at most 500 characters, without control characters and credentials.",
  }),
  dead_since: time,
  created_at: time,
});
export type DeadLetter = z.infer<typeof deadLetter>;

export const deadLetters = z
  .strictObject({ calls: z.array(deadLetter) })
  .meta({ description: 'The dead letters, oldest first.' });

export const requeued = z.strictObject({ call_id: callId, status: z.literal('enqueued') });
