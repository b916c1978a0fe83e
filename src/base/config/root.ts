import { z } from 'zod';
import { brokerName } from '../values/broker/names.ts';
import { invocationModes } from '../values/job.ts';
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
    'Where the gateway listens; `[::]:8402` for IPv6; port 0: the system chooses',
  ),
  public_url: baseUrl
    .optional()
    .describe("Clients' address; required with `[identity]`, unless the gateway listens on loopback"),
  ledger_name: matching(brokerName, 'must be 1 to 64 of A-Z, a-z, 0-9, "_" and "-"')
    .default('tollbook')
    .describe('Name in alerts, traces and broker streams'),
  features: z
    .array(oneOf(features), 'must be an array of feature names')
    .refine(allDiffer, 'names a feature twice')
    .default(['x402'])
    .describe('`x402` sells jobs, `chat` serves models'),
  trust_proxy: z
    .array(proxyRange, 'must be an array of addresses')
    .default([])
    .describe('Proxies whose `X-Forwarded-For` is trusted'),
  log_level: oneOf(['fatal', 'error', 'warn', 'info', 'debug', 'silent'])
    .default('info')
    .describe('Lowest level that is logged'),
  drain_delay_secs: wholeNumber(0, 3_600)
    .default(5)
    .describe('How long after SIGTERM the gateway is not ready, but serves'),
  shutdown_grace_secs: wholeNumber(0, 3_600).default(30).describe('How long running requests may then take'),
} as const;

const confirmModes = ['required', 'before', 'after', 'never'] as const;
export type ConfirmMode = (typeof confirmModes)[number];

/** The keys at the top level that belong to paid jobs. */
export const jobsShape = {
  facilitator_url: secureBaseUrl
    .optional()
    .describe('http on loopback only; with `x402`, either it or `[[facilitators]]` is required'),
  facilitator_verify: flag
    .default(true)
    .describe('The facilitator verifies payments for public jobs before they are settled'),
  facilitator_settle_timeout_ms: wholeNumber(1, 600_000)
    .default(60_000)
    .describe('Time limit of a settlement; then the chain shows the outcome'),
  facilitator_token: rotatingSecret.describe(
    'Bearer token for the facilitator; `ID:KEY`, an Ed25519 key of 64 bytes in base64, signs each request instead',
  ),
  receipt_key: rotatingSecret.describe(
    'Makes receipt tokens; the same for every gateway. Without it a key in the database does: a copy of the database opens every receipt',
  ),
  quote_key: rotatingSecret.describe(
    'Authenticates quotes; the same for every gateway of this ledger only. Without it each quote is recorded before its answer',
  ),

  rate_per_native_unit: reloadable(rate.optional()).describe(
    'Tokens for one native unit, for tokens without a rate',
  ),
  markup_bps: reloadable(markupBps.default(0)).describe('Markup, for tokens without one'),
  default_invocation_mode: reloadable(oneOf(invocationModes).default('disabled')).describe(
    'For priced jobs without a policy',
  ),
  quote_ttl_secs: reloadable(wholeNumber(10, 86_400).default(300)).describe('Validity of a quoted price'),
  max_timeout_secs: reloadable(wholeNumber(1, 86_400).default(300)).describe(
    "Longest validity of a payment's signature: more than `facilitator_settle_timeout_ms` plus 6 s",
  ),
  pay_to_exclusive: flag.default(true).describe('`false` only while another ledger shares a payee'),
  confirm: reloadable(oneOf(confirmModes).default('before')).describe(
    'When, relative to the answer, the gateway looks for the transfer on the chain; `required`: before it, no 202 without the transfer, and each network needs an RPC. Both wait for 5 s; then `required` answers `settlement_pending`',
  ),
  job_prices_file: reloadable(filePath.optional()).describe('File with the tables of `[job_prices]`'),
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
  facilitators: z.unknown(),
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
