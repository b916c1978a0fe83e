import type { AuthMode, InvocationMode } from '../domain/job.ts';
import type { IdentifierMode } from '../domain/payment-identifier.ts';
import type { Address, Caip2 } from '../domain/primitives.ts';
import type { AcceptedToken } from '../domain/token.ts';

export const features = ['x402', 'routing', 'pricing'] as const;
/** A part of the gateway that the operator switches on. */
export type Feature = (typeof features)[number];

export const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'silent'] as const;
type LogLevel = (typeof logLevels)[number];

export const confirmations = ['before', 'after', 'never'] as const;
/** When a settlement is looked up on the chain: before the answer, after it, or never. */
type Confirmation = (typeof confirmations)[number];

/** All that the operator decides, read once and deeply frozen. Secrets are in it as they are: never log it. */
export interface Config {
  /** The file's path as it was given. */
  readonly file: string;
  /** The host of an IPv6 address has no brackets. Port 0 lets the system choose. */
  readonly bindAddress: { readonly host: string; readonly port: number };
  /** What clients are told; no trailing slash. Derived from the bind address, port 0 included, when left out. */
  readonly publicUrl: string;
  readonly features: readonly Feature[];
  /** Undefined when the feature is off. */
  readonly x402: X402Config | undefined;
  readonly runners: readonly RunnerConfig[];
  readonly limits: LimitsConfig;
  readonly delivery: DeliveryConfig;
  readonly alerts: AlertsConfig;
  /** Addresses and CIDR ranges whose X-Forwarded-For is believed. */
  readonly trustProxy: readonly string[];
  readonly logLevel: LogLevel;
  readonly shutdownGraceMs: number;
}

export interface X402Config {
  readonly facilitator: FacilitatorConfig;
  /** At least one; never two of one (network, asset). */
  readonly tokens: readonly AcceptedToken[];
  /** By `jobKey()`. A job without one follows `defaultInvocationMode`. */
  readonly policies: ReadonlyMap<string, JobPolicy>;
  /** Wei above zero, by `jobKey()`. A job without one does not exist. */
  readonly prices: ReadonlyMap<string, bigint>;
  readonly defaultInvocationMode: InvocationMode;
  readonly quoteTtlSecs: number;
  /** How far in the future a delegated caller's signature may expire. */
  readonly maxSignatureTtlSecs: number;
  /** How long an answer of the permission contract is reused; 0 asks every time. */
  readonly parityCacheSecs: number;
  /** x402's maxTimeoutSeconds. */
  readonly maxTimeoutSecs: number;
  readonly paymentIdentifier: IdentifierMode;
  readonly confirm: Confirmation;
  readonly confirmTimeoutMs: number;
  /** The accepted tokens' networks, as far as each has an RPC. */
  readonly networks: ReadonlyMap<Caip2, NetworkConfig>;
}

export interface FacilitatorConfig {
  /** No trailing slash. */
  readonly url: string;
  /** Whether payments of public jobs are verified before they are settled. */
  readonly verify: boolean;
  readonly verifyTimeoutMs: number;
  readonly settleTimeoutMs: number;
  readonly bearer?: string;
}

export interface NetworkConfig {
  readonly rpcUrl: string;
  /** `public`: the operator named none, so it is the one that viem knows for the chain. */
  readonly source: 'configured' | 'public';
}

/** Who may call a job. A `restricted_paid` policy always has the three optional fields, `public_paid` none. */
export interface JobPolicy {
  readonly serviceId: number;
  readonly jobIndex: number;
  readonly invocationMode: InvocationMode;
  readonly authMode?: AuthMode;
  readonly netRpcUrl?: string;
  readonly netContract?: Address;
  /** What a request must be to be taken at all; anything where left out. */
  readonly input?: JobInput;
}

/** Checked before payment: nobody pays for what the runner must reject. */
export interface JobInput {
  /** A media type without parameters, lower case. */
  readonly contentType: string;
  /** JSON Schema, draft 2020-12; known to compile. */
  readonly schema?: JsonSchema;
}

export type JsonSchema = Readonly<Record<string, unknown>>;

export interface RunnerConfig {
  /** Unique. */
  readonly name: string;
  readonly services: readonly number[];
  readonly mode: 'push' | 'lease';
  /** Where calls are pushed to; always there for `push`, never for `lease`. */
  readonly url?: string;
  /** The bearer token itself. */
  readonly token: string;
}

export interface LimitsConfig {
  readonly maxBodyBytes: number;
  /** 0 switches the limit off. */
  readonly requestsPerMinute: number;
  readonly maxOutstandingCalls: number;
  readonly maxInFlightRequests: number;
}

export interface DeliveryConfig {
  readonly maxAttempts: number;
  readonly backoffBaseMs: number;
  readonly backoffCapMs: number;
  readonly timeoutMs: number;
  readonly leaseSecs: number;
  readonly concurrencyPerRunner: number;
  readonly maxResultBytes: number;
}

export interface AlertsConfig {
  /** Where the operator is told; its secret signs the messages. */
  readonly webhook?: { readonly url: string; readonly secret?: string };
  /** How long a settlement may stay unresolved before the operator is told. */
  readonly unresolvedAfterSecs: number;
}
