import { z } from 'zod';
import type { Counters } from '../../domain/events/counters.ts';
import { count, time } from './values.ts';

const checkShape = {
  ok: z.boolean(),
  detail: z.string().optional().meta({ description: 'The problem, or a remark.' }),
};
export const readinessCheck = z.strictObject(checkShape);

export const readiness = z
  .strictObject({
    status: z.enum(['ready', 'not_ready']),
    checked_at: time,
    database: readinessCheck,
    migrations: readinessCheck,
    facilitator: readinessCheck.meta({
      description: 'The facilitator is reachable and settles on every accepted network.',
    }),
    chains: z.record(z.string(), readinessCheck).meta({ description: 'By CAIP-2 name.' }),
    outbox: z.strictObject({
      ...checkShape,
      open_calls: count,
      oldest_due_ms: count.meta({ description: 'How long the oldest due call has been waiting.' }),
    }),
    workers: readinessCheck.optional().meta({
      description:
        'Whether any process on the ledger runs the workers. Not part of `status`: payments are taken and settled without them.',
    }),
    chat: readinessCheck.optional().meta({
      description: 'If the gateway also serves models. Not part of `status`, which is about payments.',
    }),
  })
  .meta({
    description: 'Read from the results of background checks: a request makes no call to any peer.',
  });
export type ReadinessJson = z.infer<typeof readiness>;

const condition = z.enum(['ok', 'degraded', 'critical']).meta({
  description: '`critical`: nothing is sold until the operator acts. `degraded`: some work waits.',
});

export const gatewayStatus = z.strictObject({
  status: condition,
  ledger: z.strictObject({
    status: condition,
    detail: checkShape.detail,
    since: time.optional(),
  }),
  workers: z
    .strictObject({ status: condition, detail: checkShape.detail })
    .meta({ description: 'Whether any process on the ledger runs the workers.' }),
});
export type GatewayStatus = z.infer<typeof gatewayStatus>;

const counter = (description: string) => count.meta({ description });
const counters = {
  accepted: counter('Paid calls that were enqueued.'),
  denied: counter('Requests whose caller was not permitted.'),
  replay_denied: counter('Requests whose payment or nonce was used before, for another request.'),
  payment_replay_denied: counter('Those whose payment, quote or payment identifier was used before.'),
  nonce_replay_denied: counter("Those whose caller's nonce was used before."),
  enqueue_failed: counter('Requests refused before any money moved because the outbox was full.'),
  dry_run: counter('Dry runs, with any result.'),
  quoted: counter('Quotes issued.'),
  settled: counter('Payments settled.'),
  settlement_unknown: counter('Settlements whose outcome was unknown at first.'),
  settlement_failed: counter(
    'Settlements that failed before anything was broadcast, or that can no longer land.',
  ),
  settlement_disproved: counter(
    'Settlements that only the facilitator reported and the chain does not show.',
  ),
  settlement_reorged: counter('Settlements whose block was reorged out.'),
  dry_run_allowed: counter('Dry runs that were allowed.'),
  dry_run_denied: counter('Dry runs that were denied.'),
  dry_run_error: counter('Dry runs that could not be decided.'),
  delivered: counter('Deliveries of calls to runners.'),
  completed: counter('Calls completed.'),
  dead_lettered: counter('Calls that became dead letters.'),
} satisfies Record<keyof Counters, z.ZodType<number>>;

export const stats = z
  .strictObject({
    status: z.literal('ok'),
    as_of_seq: count.meta({ description: 'The last event that is counted.' }),
    counters: z.strictObject(counters),
  })
  .meta({ description: 'Counts of the events of paid jobs since the ledger began.' });
export type Stats = z.infer<typeof stats>;

export const chatReadiness = z
  .strictObject({
    status: z.enum(['ready', 'not_ready']),
    database: readinessCheck,
    models: z
      .record(z.string(), readinessCheck)
      .meta({ description: 'By name: whether the model has a healthy upstream.' }),
    spend_auth: readinessCheck.optional().meta({
      description:
        'If spend authorizations are accepted: whether the operator has the ether to pay out spends.',
    }),
  })
  .meta({ description: 'Read from the results of background checks: a request makes no call to any peer.' });
