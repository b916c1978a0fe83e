import { z } from 'zod';
import { failureCausePattern } from '../../../base/values/failure-cause.ts';
import { triggerKinds } from '../../../base/values/triggers/trigger.ts';
import { operatorTextPattern } from '../../../base/values/operator-words.ts';
import { runnerName } from '../../../base/values/runner-name.ts';
import {
  callId,
  count,
  jobIndex,
  jobName,
  queryNumber,
  quoteDigest,
  serviceId,
  time,
} from '../../../base/http/values.ts';

export const runnerParameter = z
  .string()
  .regex(runnerName)
  .describe('The name of a runner in the configuration.');

export const deadLettersQuery = z.strictObject({
  after: z.coerce.number().int().min(0).default(0).describe('The last `call_id` of the previous page.'),
  limit: z.coerce.number().int().min(1).max(1_000).default(100).describe('The most items of a page.'),
});

const cause = z
  .string()
  .regex(failureCausePattern)
  .meta({
    description:
      'The same for dead letters of the same reason, status and words, apart from numbers and ids in these words.',
    examples: ['attempts_exhausted-503-9f86d081884c'],
  });

export const deadLetter = z.strictObject({
  call_id: callId,
  quote_digest: quoteDigest.optional().describe('Of a paid call.'),
  trigger: z
    .strictObject({ kind: z.enum(triggerKinds), name: z.string(), id: z.string() })
    .optional()
    .describe('What made a call that no payment has bought: no refund is due for it.'),
  ...jobName,
  attempts: count.describe('How often the call was delivered or leased.'),
  reason: z.string().nullable().describe('Why the call is a dead letter, as in the ledger.'),
  cause,
  runner: z
    .string()
    .nullable()
    .describe('The runner of the last attempt; null for a call that sells credit.'),
  last_error: z
    .string()
    .nullable()
    .describe(
      "The runner's last words, with its status: at most 500 characters, without control characters and credentials.",
    ),
  dead_since: time,
  created_at: time,
});
export type DeadLetter = z.infer<typeof deadLetter>;

export const deadLetters = z
  .strictObject({ calls: z.array(deadLetter) })
  .describe('The dead letters, oldest first.');

export const requeued = z.strictObject({ call_id: callId, status: z.literal('enqueued') });

const reason = z
  .string()
  .regex(/^[a-z0-9_]{1,100}$/)
  .describe('As in the list.');
/** The selected dead letters, besides their cause. */
const filter = {
  service_id: serviceId.optional(),
  job_index: jobIndex.optional().describe('With `service_id`: one job.'),
  reason: reason.optional(),
  runner: runnerParameter.optional(),
  since: z.iso.datetime().optional().describe('Dead since then or later.'),
  before: z.iso.datetime().optional().describe('Dead before that.'),
};
const batch = {
  ...filter,
  cause: cause.optional(),
  after: z.int().min(0).default(0).describe('`next` of the batch before.'),
  limit: z.int().min(1).max(500).default(500).describe('The most dead letters of this batch.'),
  dry_run: z.boolean().default(false).describe('Changes nothing: the answer says what would be done.'),
};
const next = callId.nullable().describe('Where the next batch begins; null after the last dead letter.');

/** The number of a job alone says nothing: each service counts its own. */
function namesService(chosen: { service_id?: number | undefined; job_index?: number | undefined }): boolean {
  return chosen.job_index === undefined || chosen.service_id !== undefined;
}
const needsService = { error: 'job_index needs service_id', path: ['job_index'] };

export const requeueRequest = z
  .strictObject(batch)
  .refine(namesService, needsService)
  .describe('Which dead letters are meant: those that match every member that is set.');

export const requeueReport = z.strictObject({
  requeued: count.describe('Dead letters that are in the queue again, or would be.'),
  skipped: z.array(
    z.strictObject({ call_id: callId, why: z.enum(['not_dead', 'refunded', 'refund_under_way', 'unpaid']) }),
  ),
  next,
});
export type RequeueReportJson = z.infer<typeof requeueReport>;

const whyExample = 'The runner was retired.';
const why = z
  .string()
  .regex(operatorTextPattern)
  .meta({ description: 'For the record, for ever: printable ASCII without "@".', examples: [whyExample] });

export const discardRequest = z.strictObject({ why });
export const discarded = z.strictObject({ call_id: callId, status: z.literal('discarded') });

export const discardManyRequest = z
  .strictObject({
    ...batch,
    all: z
      .literal(true)
      .optional()
      .describe('Every dead letter is meant. Needed if no other member says which.'),
    count: z
      .int()
      .min(0)
      .optional()
      .describe('How many this batch means, as `discarded` of a dry run says. Needed for any other.'),
    why,
  })
  .refine(namesService, needsService)
  .refine(({ count: confirmed, dry_run: isDryRun }) => isDryRun || confirmed !== undefined, {
    error: 'count says how many are meant, as a dry run counts them',
    path: ['count'],
  })
  .refine(({ all, why: _why, after: _after, limit: _limit, dry_run: _dryRun, count: _count, ...named }) => {
    const isNamed = Object.values(named).some((value) => value !== undefined);
    return isNamed !== (all === true);
  }, 'say which dead letters are meant, or all: true')
  .meta({
    description:
      'Which dead letters are meant: those that match every member that is set. At least one says which, or `all` is true.',
    examples: [{ all: true, dry_run: true, why: whyExample }],
  });

export const discardReport = z.strictObject({
  discarded: count.describe('Dead letters that are given up, or would be.'),
  skipped: z.array(z.strictObject({ call_id: callId, why: z.literal('not_dead') })),
  next,
});
export type DiscardReportJson = z.infer<typeof discardReport>;

export const causesQuery = z.strictObject({
  service_id: queryNumber.pipe(serviceId).optional(),
  job_index: queryNumber.pipe(jobIndex).optional(),
  reason: filter.reason,
  runner: filter.runner,
  since: filter.since,
  before: filter.before,
  after: deadLettersQuery.shape.after,
});

export const deadLetterCauses = z
  .strictObject({
    causes: z.array(
      z.strictObject({
        cause,
        reason: deadLetter.shape.reason,
        words: z
          .string()
          .describe(
            'What the runners said, with `#` in place of numbers and ids: at most 160 characters, one line.',
          ),
        calls: count,
        jobs: z.array(z.string()).describe('As `service/job`; at most 10.'),
        runners: z.array(z.string()).describe('At most 10.'),
        oldest: time,
        newest: time,
        example_call_id: callId,
      }),
    ),
    others: count.describe('Dead letters of causes that are not listed: a list has 1,000 at most.'),
    next: callId
      .nullable()
      .describe('Where the next part begins, which has its own groups; null after the last dead letter.'),
  })
  .describe('The causes of dead letters, those with the most first: at most 50,000 dead letters at a time.');
export type DeadLetterCausesJson = z.infer<typeof deadLetterCauses>;

export const changedRunner = z.strictObject({ runner: runnerParameter, paused: z.boolean() });
