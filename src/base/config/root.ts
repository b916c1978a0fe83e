import { z } from 'zod';
import { brokerName } from '../values/broker/names.ts';
import { invocationModes } from '../values/job.ts';
import { identifierModes } from '../values/payment-identifier.ts';
import { rotatingSecret } from './secret-source.ts';
import { reloadable, type Table } from './table.ts';
import { baseUrl, bindAddress, proxyRange, secureBaseUrl } from './urls.ts';
import { filePath, flag, markupBps, matching, oneOf, rate, wholeNumber } from './values.ts';

const features = ['x402', 'chat'] as const;
/** A part of the gateway that the operator switches on. */
export type Feature = (typeof features)[number];

/** The keys at the top level that belong to no feature. */
export const gatewayShape = {
  bind_address: bindAddress.describe(
    'host:port to listen on, [::]:8402 for IPv6; port 0 lets the system choose',
  ),
  public_url: baseUrl.optional().describe('The address that clients use'),
  ledger_name: matching(brokerName, 'must be 1 to 64 of A-Z, a-z, 0-9, "_" and "-"')
    .default('tollbook')
    .describe(
      'What alerts, traces and the streams of a broker call the ledger; several ledgers may share a receiver',
    ),
  features: z
    .array(oneOf(features), 'must be an array of feature names')
    .refine(allDiffer, 'names a feature twice')
    .default(['x402'])
    .describe('What the gateway does: x402 sells jobs, chat serves models'),
  loopback_webhooks: flag
    .default(false)
    .describe('Webhooks of customers may be on this machine, also without https. For development alone'),
  trust_proxy: z
    .array(proxyRange, 'must be an array of addresses')
    .default([])
    .describe('Addresses and CIDR ranges whose X-Forwarded-For is trusted'),
  log_level: oneOf(['fatal', 'error', 'warn', 'info', 'debug', 'silent'])
    .default('info')
    .describe('The least level of what is logged'),
  drain_delay_secs: wholeNumber(0, 3_600)
    .default(5)
    .describe('How long the gateway is not ready, and serves all the same, before it stops'),
  shutdown_grace_secs: wholeNumber(0, 3_600)
    .default(30)
    .describe('How long requests may take to finish after that'),
} as const;

const confirmModes = ['required', 'before', 'after', 'never'] as const;
export type ConfirmMode = (typeof confirmModes)[number];

/** The keys at the top level that belong to paid jobs. */
export const jobsShape = {
  facilitator_url: secureBaseUrl
    .optional()
    .describe(
      'The facilitator, which verifies and settles payments: https, or http on loopback; required with x402',
    ),
  facilitator_verify: flag
    .default(true)
    .describe('Whether payments of public jobs are verified before they are settled'),
  facilitator_verify_timeout_ms: wholeNumber(1, 120_000)
    .default(10_000)
    .describe("The time limit of the facilitator's answer about a payment"),
  facilitator_settle_timeout_ms: wholeNumber(1, 600_000)
    .default(60_000)
    .describe('After it a settlement is unknown, and the gateway resolves it from the chain'),
  facilitator_token: rotatingSecret.describe('The bearer token, if the facilitator requires one'),
  receipt_key: rotatingSecret.describe(
    'Makes the receipt tokens: 32 characters or more, the same for every gateway of the ledger. Left out, a key in the database does, and a copy of it opens every receipt',
  ),
  quote_key: rotatingSecret.describe(
    'Authenticates quotes: 32 characters or more, the same for every gateway of the ledger and no other. Left out, each quote is recorded before its answer',
  ),

  rate_per_native_unit: reloadable(rate.optional()).describe(
    'The rate of tokens that have none of their own',
  ),
  markup_bps: reloadable(markupBps.default(0)).describe('The markup of tokens that have none of their own'),
  default_invocation_mode: reloadable(oneOf(invocationModes).default('disabled')).describe(
    'Who may call a priced job that has no policy',
  ),
  quote_ttl_secs: reloadable(wholeNumber(10, 86_400).default(300)).describe(
    'How long a quoted price is valid',
  ),
  max_timeout_secs: reloadable(wholeNumber(1, 86_400).default(300)).describe(
    'How long the signature of a payment may be valid: longer than facilitator_settle_timeout_ms and 6 s',
  ),
  pay_to_exclusive: flag
    .default(true)
    .describe(
      'Whether every transfer to the payees is meant for this ledger: false only while two share one',
    ),
  payment_identifier: reloadable(oneOf(identifierModes).default('optional')).describe(
    "Whether a payment must carry an id of its payer's own",
  ),
  confirm: reloadable(oneOf(confirmModes).default('before')).describe(
    'When a settlement is looked up on the chain: before the answer, after it, or never. `required`: before the answer, and what the chain does not show is not accepted',
  ),
  confirm_timeout_ms: reloadable(wholeNumber(1, 600_000).default(5_000)).describe(
    'How long `before` waits until it goes on as `after`, and `required` until it answers settlement_pending',
  ),
  job_prices_file: reloadable(filePath.optional()).describe(
    'A file with the tables of [job_prices], in place of them',
  ),
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
  route_listener: z.unknown(),
  routes: z.unknown(),
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
