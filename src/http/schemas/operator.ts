import { z } from 'zod';
import { operatorTextPattern } from '../../domain/values/operator-words.ts';
import { runnerName } from '../../domain/values/runner-name.ts';
import { callId, count, jobName, quoteDigest, serviceId, time } from './values.ts';

export const runnerParameter = z
  .string()
  .regex(runnerName)
  .meta({ description: 'The name of a runner in the configuration.' });

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

export const requeueRequest = z
  .strictObject({
    service_id: serviceId.optional(),
    reason: z
      .string()
      .regex(/^[a-z0-9_]{1,100}$/)
      .optional()
      .meta({ description: 'As in the list.' }),
    runner: runnerParameter.optional(),
    since: z.iso.datetime().optional().meta({ description: 'Dead since then or later.' }),
    before: z.iso.datetime().optional().meta({ description: 'Dead before that.' }),
    after: z.int().min(0).default(0).meta({ description: '`next` of the batch before.' }),
    limit: z.int().min(1).max(500).default(500).meta({ description: 'The most dead letters of this batch.' }),
    dry_run: z
      .boolean()
      .default(false)
      .meta({ description: 'Changes nothing: the answer says what would be done.' }),
  })
  .meta({ description: 'Which dead letters are meant: those that match every member that is set.' });

export const requeueReport = z.strictObject({
  requeued: count.meta({ description: 'Dead letters that are in the queue again, or would be.' }),
  skipped: z.array(z.strictObject({ call_id: callId, why: z.enum(['not_dead', 'refunded', 'unpaid']) })),
  next: callId
    .nullable()
    .meta({ description: 'Where the next batch begins; null behind the last dead letter.' }),
});
export type RequeueReportJson = z.infer<typeof requeueReport>;

export const discardRequest = z.strictObject({
  why: z
    .string()
    .regex(operatorTextPattern)
    .meta({ description: 'For the record, for ever: printable ASCII without "@".' }),
});
export const discarded = z.strictObject({ call_id: callId, status: z.literal('discarded') });

export const changedRunner = z.strictObject({ runner: runnerParameter, paused: z.boolean() });
