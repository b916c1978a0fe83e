import { type ChatConfigValues, chatTables, chatTop } from './chat-config.ts';
import { type RouteConfigValues, routeTables } from './route-config.ts';
import { noteSigner } from '../../src/base/values/log/checkpoint.ts';
import type { Address } from '../../src/base/values/primitives.ts';
import { devnetKeys } from '../../src/devnet/accounts.ts';
import { fleetWork, runnerToken } from './runner-work.ts';

export interface GatewayConfigValues {
  readonly port: number;
  readonly facilitatorUrl: string;
  readonly rpcUrl: string;
  readonly pushUrl: string;
  readonly network: { readonly tokens: readonly [Address, Address, Address]; readonly registry: Address };
  readonly payTo: Address;
  /** Left out, the usual one. */
  readonly variant?: ConfigVariant;
  /** Where the log is anchored, and how often at most; undefined for a gateway without a log. */
  readonly log?: { readonly folder: string; readonly everyMs: number } | undefined;
  /** Undefined for a gateway that serves paid jobs alone. */
  readonly chat?: Omit<ChatConfigValues, 'token'> | undefined;
  /** Undefined for a gateway that sells no routes. */
  readonly routes?: RouteConfigValues | undefined;
  /** Default 0: no load balancer. */
  readonly drainDelaySecs?: number;
  /** Of `[limits]` for calls that are not done; left out, the program's. */
  readonly maxOutstandingCalls?: number;
  /** Further tables. */
  readonly tables?: string;
}

/** What may differ between two gateways of one ledger. */
export interface ConfigVariant {
  readonly markupBps: number;
  readonly quoteTtlSecs: number;
  readonly confirm: 'before' | 'after' | 'never' | 'required';
  /** Of requests to the facilitator: short, so that settlements become unknown within seconds. */
  readonly timeoutMs: number;
  /** Of a client address, without a settlement; 0 for no limit. */
  readonly requestsPerMinute: number;
  /** Quotes authenticate themselves and are recorded behind the answer; otherwise each is recorded before it. */
  readonly hasQuoteKey: boolean;
}

const logOrigin = 'chaos.example/log';
/** The seed of the log's signing key, in hex. */
const logKey = '2a'.repeat(32);
/** The secrets that the configuration names. */
export const gatewaySecrets = {
  CHAOS_RUNNER_TOKEN: runnerToken,
  CHAOS_FLEET_TOKEN: fleetWork.token,
  CHAOS_LOG_KEY: logKey,
  CHAOS_QUOTE_KEY: 'a-quote-key-of-the-fault-harness-only',
  CHAOS_IDENTITY_SECRET: 'an identity secret of the chaos, long enough'.replaceAll(' ', '-'),
  CHAOS_OPERATOR_KEY: devnetKeys.operator,
} as const;

export const usualConfig: ConfigVariant = {
  markupBps: 200,
  quoteTtlSecs: 300,
  confirm: 'before',
  timeoutMs: 1_500,
  requestsPerMinute: 0,
  hasQuoteKey: true,
};
/** Nothing but a hostile client may delay a payment. */
export const siegeConfig: ConfigVariant = { ...usualConfig, timeoutMs: 15_000, requestsPerMinute: 150 };

/** The longest validity of a payer's signature; a payment that cannot be settled ends some seconds later. */
const maxTimeoutSecs = 60;

const token = (asset: Address, symbol: string, name: string, payTo: Address, version = '2'): string => `
[[accepted_tokens]]
network = "eip155:84532"
asset = "${asset}"
symbol = "${symbol}"
decimals = 6
pay_to = "${payTo}"
eip712_name = "${name}"
eip712_version = "${version}"
`;

/** What verifies the checkpoints of a gateway with a log. */
export const logVerifierKey = noteSigner(logOrigin, [Buffer.from(logKey, 'hex')]).verifierKeys[0];

const logTables = ({ folder, everyMs }: NonNullable<GatewayConfigValues['log']>): string => `
[log]
origin = "${logOrigin}"
key = "env:CHAOS_LOG_KEY"

[[log.anchors]]
name = "copies"
kind = "folder"
location = "${folder}"
every_ms = ${everyMs}
`;

/** Quotes hold for every gateway of one public address. */
const quoteKey = `
public_url = "https://chaos.example"
quote_key = "env:CHAOS_QUOTE_KEY"
`;

/** A configuration with short time-outs, so that settlements become unknown within seconds. */
export function gatewayConfig(values: GatewayConfigValues): string {
  const { port, facilitatorUrl, rpcUrl, pushUrl, payTo, variant = usualConfig, tables = '' } = values;
  const [first, second, plain] = values.network.tokens;
  return `
bind_address = "127.0.0.1:${port}"
drain_delay_secs = ${values.drainDelaySecs ?? 0}
facilitator_url = "${facilitatorUrl}"
facilitator_settle_timeout_ms = ${variant.timeoutMs}
max_timeout_secs = ${maxTimeoutSecs}
rate_per_native_unit = "3200.00"
markup_bps = ${variant.markupBps}
quote_ttl_secs = ${variant.quoteTtlSecs}
confirm = "${variant.confirm}"
default_invocation_mode = "public_paid"
${variant.hasQuoteKey ? quoteKey : ''}
${values.chat === undefined ? '' : chatTop}
[limits]
requests_per_minute = ${variant.requestsPerMinute}
${values.maxOutstandingCalls === undefined ? '' : `max_outstanding_calls = ${values.maxOutstandingCalls}`}

[delivery]
timeout_ms = 1_500

[[networks]]
id = "eip155:84532"
rpc_url = "${rpcUrl}"
${token(first, 'USDC', 'USD Coin', payTo)}
${token(second, 'EURC', 'Euro Coin', payTo)}
${token(plain, 'PUSD', 'Plain Dollar', payTo, '1')}transfer_method = "permit2"
[[runners]]
services = [1]
mode = "push"
url = "${pushUrl}/calls"
token = "env:CHAOS_RUNNER_TOKEN"

[[runners]]
services = [2]
mode = "lease"
token = "env:CHAOS_RUNNER_TOKEN"

[job_prices.1]
0 = "1000000000000000"
1 = "1000000000000000"

[job_prices.2]
0 = "1000000000000000"

[[job_policies]]
service_id = 1
job_index = 1
invocation_mode = "restricted_paid"
auth_mode = "delegated_caller_signature"
net_rpc_url = "${rpcUrl}"
net_contract = "${values.network.registry}"
${values.log === undefined ? '' : logTables(values.log)}
${values.chat === undefined ? '' : chatTables({ ...values.chat, token: first })}
${values.routes === undefined ? '' : routeTables(values.routes)}
${tables}`;
}
