import { accountNamePattern } from '../../base/values/price.ts';
import { z } from 'zod';
import { invocationModes } from '../../base/values/job.ts';
import { operatorScopes } from '../../base/values/operator-scope.ts';
import { type EventFamily, note, recordOnly } from './descriptor.ts';
import {
  address,
  count,
  currency,
  hex32,
  ofTransfer,
  operatorName,
  reason,
  runner,
  settlementTerms,
  visibleName,
} from './fields.ts';

const { network, asset, symbol, decimals, amount, pay_to } = settlementTerms;

/** How a job is sold; left out if it is not priced. */
const soldAs = z.strictObject({
  mode: z.enum(invocationModes),
  /** In units of 10^-18 dollars if `in_usd` says so. */
  price_wei: amount,
  in_usd: z.literal(true).optional(),
});

/** An operator's actions other than payments: tokens, the configuration, runners and sweeps. */
export const operatorEvents = {
  operator_token_created: {
    ...recordOnly,
    schema: z.strictObject({
      token_id: count,
      scopes: z.array(z.enum(operatorScopes)),
      accounts: z.array(z.string().regex(accountNamePattern)).optional(),
    }),
    transition: note,
  },
  operator_token_revoked: {
    ...recordOnly,
    schema: z.strictObject({ token_id: count }),
    transition: note,
  },
  operator_config_loaded: {
    ...recordOnly,
    /** `changes` has the first of the jobs that the configuration changed; `more_changes` counts the others. */
    schema: z.strictObject({
      jobs: count,
      catalog_sha256: hex32,
      changes: z
        .array(
          z.strictObject({
            service_id: count,
            job_index: count,
            was: soldAs.optional(),
            now: soldAs.optional(),
          }),
        )
        .max(50)
        .optional(),
      more_changes: count.optional(),
    }),
    transition: note,
  },
  operator_config_refused: {
    ...recordOnly,
    schema: z.strictObject({ mistakes: count }),
    transition: note,
  },
  operator_models_loaded: {
    ...recordOnly,
    schema: z.strictObject({ models: count, models_sha256: hex32, currency: currency.optional() }),
    transition: note,
  },
  /** The usage that an upstream reported for a completion cannot be true: the operator decides about the upstream. */
  operator_usage_implausible: {
    ...recordOnly,
    schema: z.strictObject({
      chat_id: z.uuid(),
      upstream: visibleName,
      model: visibleName,
      /** A count that is not a whole number; or a cost above all that the request was allowed to cost. */
      problem: z.enum(['malformed', 'above_hold']),
    }),
    transition: note,
    followUps: ['alert'],
  },
  /** Payouts of spends wait: their gas costs too much now, or a transaction of the operator's key does not land. */
  operator_payouts_postponed: {
    ...recordOnly,
    schema: z.strictObject({
      network,
      contract: address,
      /** Of the spend that showed it, with its amount in atoms. */
      chat_id: z.uuid(),
      amount,
      reason: z.enum(['gas_too_expensive', 'transaction_pending']),
    }),
    transition: note,
    followUps: ['alert'],
  },
  /** No payment starts on a quote that was issued before this time, in Unix seconds. It never goes back. */
  operator_quotes_revoked: {
    ...recordOnly,
    schema: z.strictObject({ before: count, operator: operatorName }),
    transition: note,
  },
  operator_runner_paused: {
    ...recordOnly,
    /** `operator`: an operator, whom the event names, paused it. */
    schema: z.strictObject({ runner, reason, operator: operatorName.optional(), token_id: count.optional() }),
    transition: note,
  },
  operator_runner_resumed: {
    ...recordOnly,
    schema: z.strictObject({ runner, operator: operatorName.optional(), token_id: count.optional() }),
    transition: note,
  },
  /** A transfer from a payee to another account of the operator. */
  operator_sweep_recorded: {
    ...recordOnly,
    schema: z.strictObject({
      network,
      asset,
      symbol,
      decimals,
      pay_to,
      swept_to: address,
      amount,
      ...ofTransfer,
      operator: operatorName,
    }),
    transition: { of: 'entity', kind: 'sweep', from: ['none'], to: 'recorded' },
    uniqueness: 'claims',
    bookkeeping: 'posts',
    reconciliation: 'needed',
  },
  /** A verifier's signed note about the first `size` events: their root, and the refunds that were due. */
  operator_attestation_recorded: {
    ...recordOnly,
    schema: z.strictObject({
      size: count.min(1),
      note: z.string().regex(/^[\n -~—]{1,4096}$/),
      operator: operatorName,
    }),
    transition: { of: 'entity', kind: 'attestation', from: ['none', 'recorded'], to: 'recorded' },
  },
} as const satisfies EventFamily;
