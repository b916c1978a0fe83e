import { z } from 'zod';
import { invocationModes } from '../domain/payments/job.ts';
import { identifierModes } from '../domain/payments/payment-identifier.ts';
import { confirmations, type Feature, features, logLevels } from './config.ts';
import type { Table } from './table.ts';
import { baseUrl, bindAddress, proxyRange, secureBaseUrl } from './urls.ts';
import { filePath, flag, markupBps, oneOf, rate, variableName, wholeNumber } from './values.ts';

const builtFeatures: readonly Feature[] = ['jobs', 'chat'];

const feature = oneOf(features).refine((name) => builtFeatures.includes(name), {
  error: (issue) => `${String(issue.input)} is not built yet`,
});

/** The top level of the operator's file. Its tables are read by the parts they belong to. */
export const rootShape = {
  bind_address: bindAddress,
  public_url: baseUrl.optional(),
  features: z
    .array(feature, 'must be an array of feature names')
    .refine(allDiffer, 'names a feature twice')
    .default(['jobs']),
  trust_proxy: z.array(proxyRange, 'must be an array of addresses').default([]),
  log_level: oneOf(logLevels).default('info'),
  shutdown_grace_secs: wholeNumber(0, 3_600).default(30),

  facilitator_url: secureBaseUrl.optional(),
  facilitator_verify: flag.default(true),
  facilitator_verify_timeout_ms: wholeNumber(1, 120_000).default(10_000),
  facilitator_settle_timeout_ms: wholeNumber(1, 600_000).default(60_000),
  facilitator_token_env: variableName.optional(),
  facilitator_token_file: filePath.optional(),

  rate_per_native_unit: rate.optional(),
  markup_bps: markupBps.default(0),
  default_invocation_mode: oneOf(invocationModes).default('disabled'),
  quote_ttl_secs: wholeNumber(10, 86_400).default(300),
  max_signature_ttl_secs: wholeNumber(1, 31_536_000).default(86_400),
  parity_cache_secs: wholeNumber(0, 3_600).default(0),
  max_timeout_secs: wholeNumber(1, 86_400).default(300),
  payment_identifier: oneOf(identifierModes).default('optional'),
  confirm: oneOf(confirmations).default('before'),
  confirm_timeout_ms: wholeNumber(1, 600_000).default(5_000),
  job_prices_file: filePath.optional(),

  accepted_tokens: z.unknown(),
  job_policies: z.unknown(),
  job_prices: z.unknown(),
  networks: z.unknown(),
  runners: z.unknown(),
  chat: z.unknown(),
  spend: z.unknown(),
  top_ups: z.unknown(),
  upstreams: z.unknown(),
  models: z.unknown(),
  identity: z.unknown(),
  limits: z.unknown(),
  delivery: z.unknown(),
  alerts: z.unknown(),
  log: z.unknown(),
} as const;

export type RootTable = Table<typeof rootShape>;

function allDiffer(list: readonly unknown[]): boolean {
  return new Set(list).size === list.length;
}
