import { z } from 'zod';
import type { Counters } from '../../domain/events/counters.ts';
import { count, time } from './values.ts';

const checkShape = {
  ok: z.boolean(),
  detail: z.string().optional().meta({ description: 'What is wrong, or worth knowing.' }),
};
export const readinessCheck = z.strictObject(checkShape);

export const readiness = z
  .strictObject({
    status: z.enum(['ready', 'not_ready']),
    checked_at: time,
    database: readinessCheck,
    migrations: readinessCheck,
    facilitator: readinessCheck.meta({ description: 'Reachable, and settles on every accepted network.' }),
    chains: z.record(z.string(), readinessCheck).meta({ description: 'By CAIP-2 name.' }),
    outbox: z.strictObject({
      ...checkShape,
      open_calls: count,
      oldest_due_ms: count.meta({ description: 'How long the oldest due call has been waiting.' }),
    }),
    chat: readinessCheck.optional().meta({
      description: 'Where models are served as well: no part of `status`, which is about payments.',
    }),
  })
  .meta({
    description: 'From states that are asked for in the background: asking here costs nobody anything.',
  });
export type ReadinessJson = z.infer<typeof readiness>;

const counter = (description: string) => count.meta({ description });
const counters = {
  accepted: counter('Paid calls that were enqueued.'),
  denied: counter('Callers that were not permitted.'),
  replay_denied: counter('Payments and nonces that were used before, for another request.'),
  enqueue_failed: counter('Requests turned away for want of room, before any money moved.'),
  dry_run: counter('Dry runs, whatever came of them.'),
  quoted: counter('Quotes issued.'),
  settled: counter('Payments settled.'),
  settlement_unknown: counter('Settlements whose outcome was not known at first.'),
  settlement_failed: counter(
    'Settlements that failed before anything was broadcast, or can never land any more.',
  ),
  settlement_disproved: counter("Settlements on a facilitator's word that the chain does not know."),
  settlement_reorged: counter('Settlements whose block was replaced before it was final.'),
  dry_run_allowed: counter('Dry runs that were allowed.'),
  dry_run_denied: counter('Dry runs that were denied.'),
  dry_run_error: counter('Dry runs that could not be decided.'),
  delivered: counter('Times a call was handed to a runner.'),
  completed: counter('Calls completed.'),
  dead_lettered: counter('Calls that no attempt could deliver.'),
} satisfies Record<keyof Counters, z.ZodType<number>>;

export const stats = z
  .strictObject({
    status: z.literal('ok'),
    as_of_seq: count.meta({ description: "The ledger's last entry that is counted." }),
    counters: z.strictObject(counters),
  })
  .meta({ description: 'Events of paid jobs, counted since the ledger began.' });
export type Stats = z.infer<typeof stats>;

export const routingReadiness = z
  .strictObject({
    status: z.enum(['ready', 'not_ready']),
    database: readinessCheck,
    models: z
      .record(z.string(), readinessCheck)
      .meta({ description: 'By their names: whether an upstream of each may be asked.' }),
    spend_auth: readinessCheck
      .optional()
      .meta({ description: 'Where spends are taken: whether the operator has the ether to claim them.' }),
  })
  .meta({ description: 'From what is known already: asking here costs nobody anything.' });
