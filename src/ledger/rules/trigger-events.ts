import { z } from 'zod';
import { triggerIdForm, triggerKinds } from '../../base/values/triggers/trigger.ts';
import { runnerName } from '../../base/values/runner-name.ts';
import { type EventFamily, recordOnly } from './descriptor.ts';
import { count, hex32, network, ofJob, uint256 } from './fields.ts';

/** Where on a chain the log is that made a call. */
const chainLog = z.strictObject({
  network,
  block_number: uint256,
  block_hash: hex32,
  transaction: hex32,
  log_index: count,
});

/** The first event of a call that no payment has bought, in a separate stream. */
export const triggerEvents = {
  call_triggered: {
    ...recordOnly,
    schema: z.strictObject({
      call_id: count,
      trigger: z.enum(triggerKinds),
      /** The trigger's name in the configuration; of a route its job. */
      trigger_name: z.string().regex(runnerName),
      /** What this firing of the trigger is identified by: used once, for ever. */
      trigger_id: z.string().regex(triggerIdForm),
      ...ofJob,
      /** The ledger's id, and the key that follows from it, the trigger, the id and the body: the stream is named by it. */
      ledger_id: z.string().regex(/^[0-9a-f]{32}$/),
      idempotency_key: hex32,
      body_sha256: hex32,
      body_bytes: count,
      /** Of a chain trigger alone. */
      log: chainLog.optional(),
    }),
    transition: { of: 'triggered_call' },
    uniqueness: 'claims',
    counters: ['triggered'],
  },
} as const satisfies EventFamily;
