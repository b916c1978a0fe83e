import { z } from 'zod';
import type { Counters } from '../rules/counters.ts';
import { count, time } from '../../base/http/values.ts';

const detail = z.string().optional().describe('What is wrong, or a remark.');
const since = time.optional().describe('When this state began.');
const readinessCheck = z.strictObject({ ok: z.boolean(), detail });
export const check = z.strictObject({ ok: z.boolean(), detail, since });

export const readiness = z
  .strictObject({
    status: z.enum(['ready', 'not_ready']),
    checked_at: time,
    database: readinessCheck.describe('Whether the database takes writes: a row is written every second.'),
    migrations: readinessCheck.describe("Whether the database has all of this program's migrations."),
    draining: z.boolean().describe('The process will stop soon. It still serves what arrives.'),
    quiet: z
      .literal(true)
      .optional()
      .describe(
        'The database may be a copy of the ledger: the gateway serves only reads until `tollbook go-live`.',
      ),
  })
  .describe('Read from the results of background checks. No peer, runner or client can change it.');
export type ReadinessJson = z.infer<typeof readiness>;

export const condition = z
  .enum(['ok', 'degraded', 'critical'])
  .describe(
    '`critical`: nothing is sold until the operator acts. `degraded`: some of it does not work, or some work waits.',
  );
const part = { status: condition, detail, since };
export const partStatus = z.strictObject(part);

const jobsStatus = z
  .strictObject({
    ...part,
    facilitator: check
      .optional()
      .describe('The facilitator is reachable and settles on every accepted network.'),
    chains: z.record(z.string(), check).optional().describe('By CAIP-2 name.'),
    rates: z
      .record(z.string(), check)
      .optional()
      .describe(
        'By token, such as `USDC on eip155:8453`: it has a current rate, and a fixed one is not too old.',
      ),
    discovery: z
      .strictObject({
        ...check.shape,
        service: z.string().describe('Its host.'),
        listed_jobs: count.describe(
          'Jobs that the last conclusive look found, or that a single one did not find.',
        ),
        gone_jobs: z.array(z.string()).readonly().describe('As `SERVICE/JOB`, at most 20.'),
        never_listed_jobs: z
          .array(z.string())
          .readonly()
          .describe('A facilitator lists a job with its first payment. At most 20.'),
      })
      .optional()
      .describe('What the discovery service lists of this gateway, if one is watched.'),
    outbox: z
      .strictObject({
        ...check.shape,
        open_calls: count.describe('Calls that have not ended.'),
        unsettled_calls: count.describe('Those of them whose payment has no known outcome.'),
        triggered_calls: count.describe('Those of them that triggers made, not payments.'),
        dead_calls: count.describe('Dead letters, at most 10,000.'),
        oldest_undecided_ms: count
          .optional()
          .describe('How long the oldest payment has no known outcome; left out if each has one.'),
        oldest_watched_ms: count
          .optional()
          .describe('How long the oldest failed payment is watched, since it may still land.'),
        oldest_enqueued_ms: count
          .optional()
          .describe(
            'How long ago the oldest call was enqueued that no runner has; left out if there is none.',
          ),
        oldest_leased_ms: count
          .optional()
          .describe('The same of the calls that runners have. Each ends within `max_call_age_secs`.'),
        started_refunds: count.describe(
          'Refunds that were started and have no end yet: their calls are not delivered.',
        ),
        oldest_started_refund_ms: count,
        services: z
          .array(
            z.strictObject({
              service_id: count,
              waiting_calls: count.describe(
                'Due calls that no runner has, those with expired leases included; at most 10,000, and 100,000 of all services.',
              ),
              oldest_waiting_ms: count,
            }),
          )
          .readonly(),
      })
      .optional(),
    broker: check.optional().describe('If this process hands calls to a broker: whether it takes them.'),
    runners: z
      .array(
        z.strictObject({
          name: z.string(),
          mode: z.enum(['push', 'lease', 'jetstream']),
          services: z.array(count).readonly(),
          is_paused: z.boolean().optional(),
        }),
      )
      .readonly()
      .optional(),
  })
  .describe('If the gateway sells paid jobs.');

const chatStatus = z
  .strictObject({
    ...part,
    models: z
      .record(z.string(), check)
      .optional()
      .describe('By name: whether the model has a healthy upstream.'),
    spend_auth: check
      .optional()
      .describe(
        'If spend authorizations are accepted: whether the operator has the ether to pay out spends.',
      ),
  })
  .describe('If the gateway serves models.');

const logStatus = z
  .strictObject({
    ...part,
    anchors: z
      .record(
        z.string(),
        z.strictObject({
          ...check.shape,
          size: count.describe('Of the last checkpoint that it has taken.'),
          behind_events: count,
        }),
      )
      .optional()
      .describe('By name: whether the anchor has taken a recent checkpoint.'),
  })
  .describe('If the ledger is sealed.');

const replicaStatus = z
  .strictObject({
    ...part,
    servers: z
      .record(
        z.string(),
        z.strictObject({
          ...check.shape,
          seq: count.optional().describe('The last event that it had at the last look.'),
          behind_ms: count.optional(),
        }),
      )
      .optional()
      .describe('By host and port: whether reads may go to this replica.'),
  })
  .describe('If read replicas are configured.');

const featureStatus = {
  replicas: replicaStatus.optional(),
  quiet: partStatus
    .optional()
    .describe('While the gateway serves only reads, and makes no request to anyone.'),
  configuration: partStatus
    .optional()
    .describe('Whether the chains say what the configuration says of them.'),
  jobs: jobsStatus.optional(),
  chat: chatStatus.optional(),
  log: logStatus.optional(),
};

export const gatewayStatus = z
  .strictObject({
    status: condition,
    ledger: partStatus,
    workers: partStatus.describe('Whether any process on the ledger runs the workers.'),
    ...featureStatus,
  })
  .describe('Without an operator token every part has `status` alone.');
export type GatewayStatus = z.infer<typeof gatewayStatus>;
export type FeatureStatus = Pick<GatewayStatus, keyof typeof featureStatus>;

const counter = (description: string) => count.describe(description);
const counters = {
  accepted: counter('Paid calls that were enqueued.'),
  denied: counter('Requests whose caller was not permitted.'),
  replay_denied: counter('Requests whose payment or nonce was used before, for another request.'),
  payment_replay_denied: counter('Those whose payment, quote or payment identifier was used before.'),
  nonce_replay_denied: counter("Those whose caller's nonce was used before."),
  enqueue_failed: counter('Requests refused before any money moved because the outbox was full.'),
  dry_run: counter('Dry runs, with any result.'),
  quoted: counter('Quotes issued: recorded or summarised, each counted once.'),
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
  triggered: counter('Calls that triggers of the operator made, not payments.'),
} satisfies Record<keyof Counters, z.ZodType<number>>;

export const stats = z
  .strictObject({
    status: z.literal('ok'),
    as_of_seq: count.describe('The last event that is counted.'),
    counters: z.strictObject(counters),
  })
  .describe('Counts of the events of paid jobs since the ledger began.');
export type Stats = z.infer<typeof stats>;
