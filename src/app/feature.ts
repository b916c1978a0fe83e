import type { FastifyInstance } from 'fastify';
import type pg from 'pg';
import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import type { LedgerEvent } from '../domain/events/event.ts';
import type { AuthorizeCall } from '../peers/facilitator/facilitator-auth.ts';
import type { Mailer } from '../peers/mail/mailer.ts';
import type { LedgerDatabase } from '../store/database.ts';
import type { Lane } from '../store/lane.ts';

/** What a feature is composed of. */
export interface FeatureParts {
  readonly config: Config;
  readonly databaseUrl: string;
  readonly ledger: { readonly pool: pg.Pool; readonly db: LedgerDatabase; readonly lane: Lane };
  readonly logger: Logger;
  readonly isStopping: () => boolean;
  readonly publicUrl: () => string;
  readonly facilitatorAuth?: AuthorizeCall | undefined;
  readonly mailer?: Mailer | undefined;
  /** What other features say of themselves where it is asked whether this gateway is ready. */
  readonly otherChecks?: () => Readonly<Record<string, FeatureCheck>>;
}

export interface FeatureCheck {
  readonly ok: boolean;
  readonly detail?: string;
}

/** A part of the gateway that the operator switched on. */
export interface RunningFeature {
  register(app: FastifyInstance): Promise<void>;
  startWorkers(): void;
  /** Prepares a new configuration, in which only reloadable keys differ; nothing changes yet. */
  prepareReload(next: Config): Reload;
  /** How it stands, by its own name. */
  checks(): Readonly<Record<string, FeatureCheck>>;
  /** Finishes what was taken, also for clients that have gone, then what the workers have in hand. */
  finish(): Promise<void>;
  /** Ends what would not be finished in time, while it can still be written down. */
  cutShort(): void;
  /** Drops the connections to peers. */
  stop(): Promise<void>;
}

/** A configuration that is ready to be put in force. */
export interface Reload {
  /** What is written down before it comes into force. */
  readonly events: readonly LedgerEvent[];
  /** All at once: requests under way keep the configuration they began with. */
  putInForce(): void;
}
