import { z } from 'zod';
import { runnerName } from '../../../base/values/runner-name.ts';
import { callId, hex32 } from '../../../base/http/values.ts';

export const triggerName = z
  .string()
  .regex(runnerName)
  .describe('The name of a webhook trigger in the configuration.');

export const triggered = z
  .strictObject({
    status: z.literal('triggered'),
    call_id: callId,
    idempotency_key: hex32.describe('What the runner gets as the idempotency key.'),
  })
  .describe('The call is on record, and a runner will get it.');
export type TriggeredJson = z.infer<typeof triggered>;
