import type { AlertsConfig } from './alerts.ts';
import type { ChatConfig } from './chat.ts';
import type { IdentityConfig } from './identity.ts';
import type { JetStreamConfig } from './jetstream.ts';
import type { JobsConfig } from './jobs.ts';
import type { LogConfig } from './log.ts';
import type { MetricsConfig } from './metrics.ts';
import type { Networks } from './networks.ts';
import type { Lines } from './mistakes.ts';
import type { ConsoleConfig, PagesConfig } from './pages.ts';
import type {
  CallbacksConfig,
  DeliveryConfig,
  DiscoveryConfig,
  LimitsConfig,
  RetentionConfig,
} from './plain-tables.ts';
import type { ResultStoreConfig } from './result-store.ts';
import type { gatewayShape } from './root.ts';
import type { RunnerConfig } from './runners.ts';
import type { SpendConfig } from './spend.ts';
import type { ConfigOf } from './table.ts';
import type { TopUpConfig } from './top-ups.ts';
import type { TracesConfig } from './traces.ts';
import type { TriggerConfig } from './triggers.ts';

export type { ChatConfig } from './chat.ts';
export type { IdentityConfig, ProviderConfig } from './identity.ts';
export type { JetStreamConfig } from './jetstream.ts';
export type { FacilitatorConfig } from './facilitator.ts';
export type { JobsConfig } from './jobs.ts';
export type { AnchorConfig, LogConfig } from './log.ts';
export type { ModelConfig, ModelTarget } from './models.ts';
export type { MetricsConfig } from './metrics.ts';
export type { ConsoleConfig, PagesConfig } from './pages.ts';
export type { DiscoveryConfig, RetentionConfig } from './plain-tables.ts';
export type { JobInput, JobPolicy } from './policies.ts';
export type { ResultStoreConfig } from './result-store.ts';
export type { RouteConfig, RoutesConfig } from './routes.ts';
export type { Feature } from './root.ts';
export type { RunnerConfig } from './runners.ts';
export type { SpendConfig } from './spend.ts';
export type { TopUpConfig } from './top-ups.ts';
export type { TracesConfig } from './traces.ts';
export type { TriggerConfig } from './triggers.ts';
export type { UpstreamConfig } from './upstreams.ts';

/**
 * The operator's file, read once and deeply frozen. Each key is documented where it is declared: in the shape of its table.
 * Secrets are in plain text: never log it.
 */
export interface Config extends ConfigOf<typeof gatewayShape> {
  /** The file's path as it was given. */
  readonly file: string;
  /** The line of a path in the file, or of its nearest ancestor that has one: for mistakes that only others can show. */
  readonly lineOf: Lines['lineOf'];
  /** The address that clients use; no trailing slash. Derived from the bind address, port 0 included, when left out. */
  readonly publicUrl: string;
  /** Customers' webhooks may be on this machine, also http: in development alone, since a customer could otherwise reach its services. */
  readonly loopbackWebhooks: boolean;
  /** Every chain with an RPC. */
  readonly networks: Networks;
  /** Undefined when the feature is off. */
  readonly jobs: JobsConfig | undefined;
  /** Undefined when the feature is off. */
  readonly chat: ChatConfig | undefined;
  /** Undefined if no client can pay with spends, or chat is off. */
  readonly spend: SpendConfig | undefined;
  /** None when chat is off. */
  readonly topUps: readonly TopUpConfig[];
  /** Undefined if there are no user accounts. */
  readonly identity: IdentityConfig | undefined;
  /** Undefined if customers have no pages. */
  readonly pages: PagesConfig | undefined;
  /** Undefined if operators have no console. */
  readonly console: ConsoleConfig | undefined;
  readonly runners: readonly RunnerConfig[];
  /** What calls jobs without payments. */
  readonly triggers: readonly TriggerConfig[];
  /** Undefined if no runner takes its calls from a broker. */
  readonly jetstream: JetStreamConfig | undefined;
  readonly limits: LimitsConfig;
  readonly delivery: DeliveryConfig;
  readonly alerts: AlertsConfig;
  /** Undefined if no discovery service is watched, or the feature x402 is off. */
  readonly discovery: DiscoveryConfig | undefined;
  readonly retention: RetentionConfig;
  /** Undefined if results go into the database alone. */
  readonly resultStore: ResultStoreConfig | undefined;
  /** Undefined if clients are not called, or the feature x402 is off. */
  readonly callbacks: CallbacksConfig | undefined;
  /** Undefined if nothing is measured. */
  readonly metrics: MetricsConfig | undefined;
  /** Undefined if requests are not traced. */
  readonly traces: TracesConfig | undefined;
  /** Undefined if the ledger is not sealed. */
  readonly log: LogConfig | undefined;
}
