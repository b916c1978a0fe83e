import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import type { Config } from '../base/config/config.ts';
import type { SendProblemPage } from '../ledger/http/errors.ts';
import type { RequestBodies } from '../base/http/request-bodies.ts';
import type { AlertCondition } from '../base/values/alert-condition.ts';
import type { LedgerEvent } from '../ledger/rules/event.ts';
import type { Tracing } from '../base/values/tracing.ts';
import type { AuthorizeCall } from '../payments/peers/facilitator/facilitator-auth.ts';
import type { Mailer } from '../base/peers/mail/mailer.ts';
import type { FeatureStatus } from '../ledger/http/status.ts';
import type { PageAddition } from '../web/pages/visit.ts';
import type { Readiness } from '../ledger/workers/readiness-checker.ts';
import type { QuoteIssuer } from '../jobs/use-cases/issue-quote.ts';
import type { Budget } from '../base/runtime/budget.ts';
import type { Figure, Metrics } from '../ledger/metrics/metrics.ts';
import type { Ledger } from '../ledger/store/ledger.ts';
import type { ReplicaReads } from '../ledger/use-cases/replicas.ts';

/** What every feature is composed from. */
export interface FeatureParts {
  readonly config: Config;
  readonly ledger: Ledger;
  /** Reads that may go to a replica. */
  readonly reads: ReplicaReads;
  readonly logger: Logger;
  readonly bodies: RequestBodies;
  readonly budget: Budget;
  readonly isStopping: () => boolean;
  /** True from the middle of a shutdown's grace period on: work accepted then no longer begins. */
  readonly isTooLate: () => boolean;
  readonly publicUrl: () => string;
  /** Another HTTP app, with the limits, the log and the error table of the gateway's own. */
  readonly openApp: () => FastifyInstance;
  readonly facilitatorAuth?: AuthorizeCall | undefined;
  readonly mailer?: Mailer | undefined;
  readonly pageAddition?: PageAddition | undefined;
  readonly readConfig?: (() => Promise<Config>) | undefined;
  /** Undefined if nothing is measured. */
  readonly metrics?: Metrics | undefined;
  /** Undefined if requests are not traced. */
  readonly tracing?: Tracing | undefined;
  /** The same for every feature: whether a load balancer should send requests to this process. */
  readonly readiness: () => Readiness;
  /** The accepted tokens, as `network/asset`, whose contracts contradict the configuration. The same set while nothing changes. */
  readonly wrongTokens: () => ReadonlySet<string>;
}

/** A composed part of the gateway. A part leaves out the members that it does not need. */
export interface RunningFeature {
  register?(app: FastifyInstance): Promise<void>;
  /** Shows a browser a page instead of the JSON of a 404. */
  readonly problemPage?: SendProblemPage;
  /** Those routes alone by which others see whether it works: for a process that runs the workers only. */
  registerHealth?(app: FastifyInstance): Promise<void>;
  /** Listens on an address of its own. Throws where that is taken. */
  listen?(): Promise<void>;
  /** Where that is, once it listens. */
  readonly routesUrl?: () => string | undefined;
  /** Starts the loops that the requests of this very process need. */
  startOwnLoops?(): void;
  /** Starts the workers, which do the work of all processes on the ledger. Left out in a process without workers. */
  startWorkers?(): void;
  /** Prepares a new configuration, in which only reloadable keys differ; nothing changes yet. */
  prepareReload?(next: Config): Reload;
  /** Issues quotes for its jobs. */
  readonly quotes?: QuoteIssuer;
  /** Its values for Prometheus. */
  figures?(): readonly Figure[];
  /** Its state for `/status`, by its own name. Asks no peer and does not read the database. */
  status?(): FeatureStatus;
  /** Payments or completions under way. */
  underWay?(): number;
  /** What the operator is alerted about in it now. Throws if it cannot look. */
  conditions?(): Promise<readonly AlertCondition[]>;
  /** False while a condition may hold that this process has not seen yet, as after its start: nothing is resolved meanwhile. */
  knowsConditions?(): boolean;
  /** Finishes the accepted requests, also for clients that have disconnected, then stops the workers. */
  finish?(): Promise<void>;
  /** Ends requests that would not finish in time, while that can still be recorded. */
  cutShort?(): void;
  /** Closes the connections to peers. */
  stop?(): Promise<void>;
}

/** A configuration that is ready to be put in force. */
export interface Reload {
  /** Records the facts that must precede the configuration; runs first. */
  record?(): Promise<void>;
  /** Recorded before the configuration comes into force. */
  readonly events?: readonly LedgerEvent[];
  /** Takes effect immediately; requests under way keep the configuration that they began with. */
  putInForce(): void;
}
