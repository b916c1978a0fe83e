import { z } from 'zod';
import { invocationModes } from '../values/job.ts';
import { identifierModes } from '../values/payment-identifier.ts';
import { rotatingSecret } from './secret-source.ts';
import { reloadable, type Table } from './table.ts';
import { baseUrl, bindAddress, proxyRange, secureBaseUrl } from './urls.ts';
import { filePath, flag, markupBps, oneOf, rate, wholeNumber } from './values.ts';

const features = ['x402', 'chat'] as const;
/** A part of the gateway that the operator switches on. */
export type Feature = (typeof features)[number];

/** The keys at the top level that belong to no feature. */
export const gatewayShape = {
  /** The host of an IPv6 address has no brackets. Port 0 lets the system choose. */
  bind_address: bindAddress,
  /** The address that clients use. */
  public_url: baseUrl.optional(),
  features: z
    .array(oneOf(features), 'must be an array of feature names')
    .refine(allDiffer, 'names a feature twice')
    .default(['x402']),
  /** Webhooks of customers may be on this machine, also without https. For development alone. */
  loopback_webhooks: flag.default(false),
  /** Addresses and CIDR ranges whose X-Forwarded-For is trusted. */
  trust_proxy: z.array(proxyRange, 'must be an array of addresses').default([]),
  log_level: oneOf(['fatal', 'error', 'warn', 'info', 'debug', 'silent']).default('info'),
  /** How long the gateway is not ready, and serves all the same, before it stops. */
  drain_delay_secs: wholeNumber(0, 3_600).default(5),
  shutdown_grace_secs: wholeNumber(0, 3_600).default(30),
} as const;

const confirmModes = ['required', 'before', 'after', 'never'] as const;
export type ConfirmMode = (typeof confirmModes)[number];

/** The keys at the top level that belong to paid jobs. */
export const jobsShape = {
  facilitator_url: secureBaseUrl.optional(),
  /** Whether payments of public jobs are verified before they are settled. */
  facilitator_verify: flag.default(true),
  facilitator_verify_timeout_ms: wholeNumber(1, 120_000).default(10_000),
  facilitator_settle_timeout_ms: wholeNumber(1, 600_000).default(60_000),
  facilitator_connections: wholeNumber(1, 60_000).default(2_000),
  facilitator_token: rotatingSecret,
  /** Makes the receipt tokens. The database does not hold it, so that a copy of the database opens no receipt. */
  receipt_key: rotatingSecret,
  /** Authenticates the prices of quotes that the ledger does not hold. Never in the database: a copy of it could mint cheap quotes. */
  quote_key: rotatingSecret,

  /** The rate of tokens that have none of their own. */
  rate_per_native_unit: reloadable(rate.optional()),
  /** When the operator is warned of a fixed rate, of tokens that do not say it themselves. */
  rate_max_age_secs: reloadable(wholeNumber(2, 2_592_000).optional()),
  /** The markup of tokens that have none of their own. */
  markup_bps: reloadable(markupBps.default(0)),
  /** For jobs without a policy. */
  default_invocation_mode: reloadable(oneOf(invocationModes).default('disabled')),
  quote_ttl_secs: reloadable(wholeNumber(10, 86_400).default(300)),
  /** How far in the future a delegated caller's signature may expire. */
  max_signature_ttl_secs: reloadable(wholeNumber(1, 31_536_000).default(86_400)),
  /** How long an answer of the permission contract is reused; 0 asks the contract every time. */
  parity_cache_secs: wholeNumber(0, 3_600).default(0),
  /** x402's maxTimeoutSeconds. */
  max_timeout_secs: reloadable(wholeNumber(1, 86_400).default(300)),
  pay_to_exclusive: flag.default(true),
  payment_identifier: reloadable(oneOf(identifierModes).default('optional')),
  /**
   * When a settlement is looked up on the chain: before the answer, after it, or never. `required`: before the answer, and what
   * the chain does not show is not accepted.
   */
  confirm: reloadable(oneOf(confirmModes).default('before')),
  confirm_timeout_ms: reloadable(wholeNumber(1, 600_000).default(5_000)),
  job_prices_file: reloadable(filePath.optional()),
  /** Whether facilitators may list the jobs whose policies do not say it. */
  discoverable: reloadable(flag.default(true)),
} as const;

/** The tables of paid jobs. Each is read by the file that has its name. */
export const jobsTables = {
  accepted_tokens: reloadable(z.unknown()),
  job_policies: reloadable(z.unknown()),
  job_prices: reloadable(z.unknown()),
  networks: reloadable(z.unknown()),
  offer_receipt: reloadable(z.unknown()),
} as const;

/** The other tables. */
export const tables = {
  retention: z.unknown(),
  result_store: z.unknown(),
  callbacks: z.unknown(),
  runners: z.unknown(),
  triggers: z.unknown(),
  jetstream: z.unknown(),
  limits: z.unknown(),
  delivery: z.unknown(),
  discovery: z.unknown(),
  alerts: z.unknown(),
  metrics: z.unknown(),
  traces: z.unknown(),
  log: z.unknown(),
  chat: z.unknown(),
  spend: z.unknown(),
  top_ups: z.unknown(),
  upstreams: reloadable(z.unknown()),
  models: reloadable(z.unknown()),
  identity: z.unknown(),
  pages: z.unknown(),
  console: z.unknown(),
} as const;

export const rootShape = { ...gatewayShape, ...jobsShape, ...jobsTables, ...tables } as const;

export type RootTable = Table<typeof rootShape>;

function allDiffer(list: readonly unknown[]): boolean {
  return new Set(list).size === list.length;
}
