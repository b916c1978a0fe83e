import { z } from 'zod';
import { type EventFamily, note, recordOnly } from './descriptor.ts';
import { count } from './fields.ts';

/** What is deleted when its configured life has ended. Nothing of it is part of the ledger. */
export const prunedKinds = [
  'call_results',
  'call_bodies',
  'callbacks',
  'refund_reasons',
  'tree_heads',
  'follow_ups',
  'failed_spends',
  'failed_payouts',
  'request_ids',
  'rate_limits',
  'operator_tokens',
  'api_keys',
  'sign_in_links',
  'alerts',
  'alert_messages',
  'mails',
] as const;
export type PrunedKind = (typeof prunedKinds)[number];

/** The rows outside the ledger that were deleted. */
export const retentionEvents = {
  /** One round of pruning: how many of each kind were deleted, all of them older than `before`, in Unix seconds. */
  data_pruned: {
    ...recordOnly,
    schema: z.strictObject({
      pruned: z
        .array(z.strictObject({ kind: z.enum(prunedKinds), count: count.min(1), before: count }))
        .min(1),
    }),
    transition: note,
  },
} as const satisfies EventFamily;
