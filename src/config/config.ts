import type { ModelPrice } from '../domain/credit/price.ts';
import type { AuthMode, InvocationMode, JobId } from '../domain/payments/job.ts';
import type { IdentifierMode } from '../domain/payments/payment-identifier.ts';
import type { Address, Caip2, Hex } from '../domain/values/primitives.ts';
import type { AcceptedToken, Rate } from '../domain/values/token.ts';

export const features = ['jobs', 'chat', 'pricing'] as const;
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
  readonly jobs: JobsConfig | undefined;
  /** Undefined when the feature is off. */
  readonly chat: ChatConfig | undefined;
  /** Undefined where people have no accounts here. */
  readonly identity: IdentityConfig | undefined;
  readonly runners: readonly RunnerConfig[];
  readonly limits: LimitsConfig;
  readonly delivery: DeliveryConfig;
  readonly alerts: AlertsConfig;
  /** Undefined where the ledger is not sealed. */
  readonly log: LogConfig | undefined;
  /** Addresses and CIDR ranges whose X-Forwarded-For is believed. */
  readonly trustProxy: readonly string[];
  readonly logLevel: LogLevel;
  readonly shutdownGraceMs: number;
}

export interface JobsConfig {
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

/** Limits are of admitted completions, by minute unless they say otherwise. */
export interface ChatConfig {
  /** What credit and prices are counted in: three to eight capitals, such as `USD`. */
  readonly currency: string;
  /** Unique names, in the order of the file. */
  readonly upstreams: readonly UpstreamConfig[];
  /** At least one; unique names, in the order of the file. */
  readonly models: readonly ModelConfig[];
  readonly anonymousPerMinute: number;
  /** By UTC day. */
  readonly anonymousPerDay: number;
  readonly sessionPerMinute: number;
  readonly keyPerMinute: number;
  readonly spendAuthPerMinute: number;
  /** Of requests with a credential that is none, by client address. */
  readonly failedAuthPerMinute: number;
  readonly maxBodyBytes: number;
  /** How many leading bits make two IPv6 addresses one client. */
  readonly ipv6Prefix: number;
  /** Undefined where nobody can pay by spend authorizations. */
  readonly spend: SpendConfig | undefined;
  /** Jobs that buy credit for whoever pays them; no runner gets their calls. */
  readonly topUps: readonly TopUpConfig[];
}

/** A priced job whose payment is the payer's credit. */
export interface TopUpConfig extends JobId {
  /** Units of the currency that a token is worth, by symbol; one where it is not named. */
  readonly currencyPerToken: Readonly<Record<string, Rate>>;
}

/** Payment by signed spends of prepaid credits on a chain. Amounts are the token's atoms. */
export interface SpendConfig {
  readonly network: Caip2;
  readonly chainId: number;
  readonly rpcUrl: string;
  readonly contract: Address;
  readonly token: Address;
  /** The operator's private key: lands spends and claims what they are worth. */
  readonly operatorKey: Hex;
  /** Where the tokens go; the operator's own address where left out. */
  readonly recipient: Address | undefined;
  readonly serviceId: number;
  /** The least and the most that one spend may be of. */
  readonly minCharge: bigint;
  readonly maxSpend: bigint;
  /** What a unit of the currency is worth. */
  readonly atomsPerUnit: bigint;
  /** How long a spend must hold beyond the request, so that it can be claimed. */
  readonly claimMarginSecs: number;
  /** How long a request waits for its spend to land. */
  readonly authorizeTimeoutMs: number;
  /** How long a spend waits for those before it. */
  readonly nonceWaitMs: number;
  /** Of one account, what may be answered before it has landed: what the operator can lose to it. 0 for nothing. */
  readonly exposure: bigint;
}

/** A server that speaks OpenAI's API. */
export interface UpstreamConfig {
  readonly name: string;
  /** What `/chat/completions` is appended to; no trailing slash. */
  readonly baseUrl: string;
  /** The bearer token itself; none for a server that asks for none. */
  readonly key?: string;
  readonly connectTimeoutMs: number;
  readonly firstByteTimeoutMs: number;
  /** Between two pieces of an answer. */
  readonly idleTimeoutMs: number;
  readonly totalTimeoutMs: number;
  /** Its share of requests among the upstreams of a model. */
  readonly weight: number;
  readonly maxConcurrent: number;
}

export interface ModelConfig {
  readonly name: string;
  /** At least one; never the same twice. */
  readonly targets: readonly ModelTarget[];
  /** Undefined for a model of the free tier. */
  readonly price: ModelPrice | undefined;
  readonly contextLength: number;
  /** At most the context length. */
  readonly maxOutputTokens: number;
  /** Parameters that are taken as they are beside those that are known to cost no more than tokens. */
  readonly allowedParameters: readonly string[];
}

/** An upstream, and what it calls the model. */
export interface ModelTarget {
  readonly upstream: string;
  readonly model: string;
}

export const providerPresets = ['google', 'gitlab', 'github'] as const;

/** How people sign in, and how long they stay. */
export interface IdentityConfig {
  /** What cookies and links are signed with. */
  readonly secret: string;
  readonly sessionDays: number;
  /** Whom messages are signed for; by default the public URL's host, and the public URL. */
  readonly siweDomain: string | undefined;
  readonly siweUri: string | undefined;
  readonly siweChainId: number;
  /** Where contracts are asked about signatures; none can sign in where it is left out. */
  readonly siweRpcUrl: string | undefined;
  /** Where mails are written; undefined where none are, and so nobody has a password. */
  readonly mailDir: string | undefined;
  /** Unique names. */
  readonly providers: readonly ProviderConfig[];
}

/** Where people have an account that lets them in here. */
export interface ProviderConfig {
  readonly name: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Of OpenID Connect, without a trailing slash; undefined for GitHub, which does not speak it. */
  readonly issuer: string | undefined;
}

/** The tamper-evident log over the ledger. */
export interface LogConfig {
  /** Its name in every checkpoint. */
  readonly origin: string;
  /** The Ed25519 seed. */
  readonly seedHex: string;
  readonly sealEveryMs: number;
  readonly sealEveryEvents: number;
  readonly anchors: readonly AnchorConfig[];
}

/** Where checkpoints are handed to others, at most every so often; names are unique. */
export type AnchorConfig = { readonly name: string; readonly everyMs: number } & (
  | { readonly kind: 'folder'; readonly folder: string }
  | { readonly kind: 'webhook'; readonly url: string; readonly secret?: string }
  | {
      readonly kind: 's3';
      readonly endpoint: string;
      readonly bucket: string;
      readonly prefix: string;
      readonly region: string;
      readonly accessKeyId: string;
      readonly secretKey: string;
    }
  | {
      readonly kind: 'chain';
      readonly network: Caip2;
      readonly chainId: number;
      readonly rpcUrl: string;
      /** A CheckpointAnchor. */
      readonly contract: Address;
      readonly privateKey: Hex;
    }
);
