import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { type Logger, pino } from 'pino';
import type { Config } from '../config/config.ts';
import { gatewaySessions, openDatabase, openPool } from '../store/database.ts';
import { grantedWriterRole } from '../store/writer-role.ts';
import { LedgerInconsistentError } from '../store/halt.ts';
import { type LaneObserver, openLane } from '../store/lane.ts';
import { pendingMigrations } from '../store/migrations.ts';
import { createChainWatch } from './chain-watch.ts';
import { createHaltAlert } from './halt.ts';
import { ledgerFigures, openMetrics } from './metrics.ts';
import { composeFeatures, composeRecorders } from './features.ts';
import { createApp } from '../http/server/app.ts';
import { createRequestBodies } from '../http/server/request-bodies.ts';
import { createBudget } from '../runtime/budget.ts';
import type { AuthorizeCall } from '../peers/facilitator/facilitator-auth.ts';
import type { Mailer } from '../peers/mail/mailer.ts';
import type { FeatureParts, RunningFeature } from './feature.ts';
import type { Part } from '../http/openapi/document.ts';
import { gatewayStatusRoutes } from '../http/server/gateway-status.ts';
import { referenceRoutes } from '../http/server/reference.ts';
import { recordRefusedReload, reloadFeatures } from './reload.ts';
import type { FeatureStatus } from '../http/schemas/status.ts';
import type { Loop } from '../workers/loop.ts';
import { createReadinessChecker } from '../workers/readiness-checker.ts';
import { createWorkerWatch } from '../workers/worker-watch.ts';
import { gatherLines } from '../runtime/gather-lines.ts';
import { within } from '../runtime/within.ts';

/** A running gateway. */
export interface RunningGateway {
  /** The address that it listens on. */
  readonly url: string;
  /**
   * Puts another configuration's prices, rates, policies, tokens and models in force, all or nothing.
   * Returns the TOML names of changed keys that require a restart.
   * @throws ConfigError where a chain contradicts it
   */
  reload(config: Config): Promise<readonly string[]>;
  /** Records that a configuration was refused, with the number of its mistakes. */
  refuseReload(mistakes: number): Promise<void>;
  /** Finishes accepted requests, stops the workers and closes every connection. Safe to call twice. */
  stop(): Promise<void>;
}

export interface GatewayOptions {
  readonly config: Config;
  /** A migrated PostgreSQL, 15 or newer. */
  readonly databaseUrl: string;
  readonly logger?: Logger;
  /**
   * Makes the headers of each request to the facilitator, such as a JWT signed for it; they go over the configured
   * bearer's. Called within the request's own time-out: if it throws or is late, the request is not sent.
   */
  readonly facilitatorAuth?: AuthorizeCall;
  /** Sends the mails of user accounts, instead of the configured mailer. */
  readonly mailer?: Mailer;
  /** Default `all`. */
  readonly workers?: WorkersMode;
}

/**
 * Whether a process runs the workers, which do the work of all processes on its ledger. `none`: it serves requests and leaves
 * them to others. `only`: it runs them, and serves nothing but its health.
 */
export type WorkersMode = 'all' | 'none' | 'only';

type Ledger = FeatureParts['ledger'];

interface LedgerOptions extends Pick<GatewayOptions, 'databaseUrl'> {
  readonly role: string | undefined;
  readonly logger: Logger;
  readonly observer: LaneObserver | undefined;
  readonly haltAlert: ReturnType<typeof createHaltAlert>;
}

/** The fields of an error that are logged. Drivers attach objects with statements and settings: those are left out. */
function plainError(error: unknown): object {
  if (!(error instanceof Error)) return { message: String(error) };
  const { name, message, stack } = error;
  const cause = error.cause === undefined ? {} : { cause: plainError(error.cause) };
  return { type: name, message, ...('code' in error ? { code: String(error.code) } : {}), stack, ...cause };
}

/** A logger of structured lines, on standard output or into a file. Headers, bodies and configurations are never logged. */
export function createLogger(level: Config['logLevel'], file?: string): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { err: plainError },
    },
    gatherLines(pino.destination(file ?? 1)),
  );
}

/**
 * Returns the role that the gateway's connections take; undefined, with a warning, where the database's user may not take it.
 * @throws where migrations are pending
 */
async function checkDatabase(databaseUrl: string, logger: Logger): Promise<string | undefined> {
  await refusePendingMigrations(databaseUrl);
  const role = await grantedWriterRole(databaseUrl);
  if (!role)
    logger.warn("this database user may not use the writer role: the gateway works with the owner's rights");
  return role;
}

/**
 * Composes a gateway from its configuration and starts to listen.
 * Throws where the database cannot be reached, lacks migrations, is halted, or the address is taken; a ConfigError where a chain
 * contradicts the configuration. A chain that does not answer does not stop the start.
 */
export async function startGateway(options: GatewayOptions): Promise<RunningGateway> {
  const { config, databaseUrl, facilitatorAuth, mailer, workers = 'all' } = options;
  const logger = options.logger ?? createLogger(config.logLevel);
  const role = await checkDatabase(databaseUrl, logger);

  let stopping = false;
  const isStopping = (): boolean => stopping;
  const haltAlert = createHaltAlert(config, logger);
  const measured = await openMetrics(config.metrics);
  const ledger = openLedger({ databaseUrl, role, logger, observer: measured?.metrics.lane, haltAlert });
  const { lane, pool } = ledger;
  const bodies = createRequestBodies(config.limits.maxBodyMemoryBytes);
  const app = createApp({ config, logger, bodies, stopping: isStopping });
  await measured?.serve(app);
  const publicUrl = (): string =>
    config.bindAddress.port === 0 ? listeningUrl(app.server.address(), config) : config.publicUrl;
  let features: readonly RunningFeature[] = [];
  const chains = createChainWatch(config, logger);
  const workerWatch = createWorkerWatch({ pool, log: logger }, workers !== 'none');
  const watching: Loop[] = [];
  const readiness = createReadinessChecker({ pool, lane, log: logger, isDraining: isStopping });
  /** Finished after the features, so that their last events are sealed and projected. */
  let recorders: readonly RunningFeature[] = [];

  const shutDown = async (): Promise<void> => {
    stopping = true;
    const graceMs = config.shutdownGraceSecs * 1_000;
    const graceEndsAt = Date.now() + graceMs;
    const finished = (async () => {
      await app.close();
      await Promise.all(features.map(async (feature) => feature.finish?.()));
      await Promise.all(recorders.map(async (recorder) => recorder.finish?.()));
      await Promise.all(watching.map((loop) => loop.stop()));
    })().catch((err: unknown) => logger.error({ err }, 'the shutdown had an error'));
    const finishedWithin = (ms: number) => within(ms, finished);
    await finishedWithin(graceMs - lastMomentMs(graceMs));
    for (const feature of features) feature.cutShort?.();
    await finishedWithin(graceEndsAt - Date.now());
    // after the grace period, appends that still wait fail, so that everything can end
    await lane.close(Math.max(0, graceEndsAt - Date.now()));
    await haltAlert.close();
    app.server.closeAllConnections();
    await Promise.all([...features, ...recorders].map(async (part) => part.stop?.()));
    await pool.end();
    await measured?.close();
  };

  try {
    const putChainsInForce = await chains.admit(config);
    putChainsInForce();
    await lane.refresh();
    if (lane.state.halt) throw new LedgerInconsistentError(lane.state.halt);
    recorders = await composeRecorders({ config, ledger, logger });
    const composed = composeFeatures({
      config,
      ledger,
      logger,
      bodies,
      budget: createBudget(config.limits.requestsPerMinute),
      isStopping,
      publicUrl,
      facilitatorAuth,
      mailer,
      metrics: measured?.metrics,
      readiness: readiness.present,
      wrongTokens: () => chains.wrongTokens(),
    });
    for await (const feature of composed) features = [...features, feature];
    const parts = [...features, ...recorders];
    await registerRoutes(app, parts, workers);
    const featureStatus = (): FeatureStatus =>
      Object.assign(chains.status(), ...parts.map((part) => part.status?.()));
    await app.register(gatewayStatusRoutes({ ledger, workers: workerWatch.check, features: featureStatus }));
    if (workers !== 'only') await app.register(referenceRoutes(publicUrl, partsOf(config)));
    await measured?.listen([...ledgerFigures(ledger), ...parts.flatMap((part) => part.figures?.() ?? [])]);
    await app.listen({ host: config.bindAddress.host, port: config.bindAddress.port });
    watching.push(workerWatch.start(), readiness.start(), chains.start());
    startLoops(parts, workers);
  } catch (error) {
    await shutDown();
    throw error;
  }
  let stopped: Promise<void> | undefined;
  return {
    url: listeningUrl(app.server.address(), config),
    async reload(next) {
      const putChainsInForce = await chains.admit(next);
      const requireRestart = await reloadFeatures(lane, config, [...features, ...recorders], next);
      putChainsInForce();
      return requireRestart;
    },
    refuseReload: (mistakes) => recordRefusedReload(lane, mistakes),
    stop: () => (stopped ??= shutDown()),
  };
}

/** This process's connections to the ledger. */
function openLedger({ databaseUrl: url, role, logger, observer, haltAlert }: LedgerOptions): Ledger {
  const onError = (err: Error): void => logger.warn({ err }, 'a database connection broke');
  const common = { url, role, onError, applicationName: gatewaySessions };
  const pool = openPool({ ...common, maxConnections: 20 });
  const lane = openLane({ ...common, observer, onHalt: (halt) => haltAlert.send(halt) });
  return { pool, db: openDatabase(pool), lane };
}

async function registerRoutes(
  app: FastifyInstance,
  parts: readonly RunningFeature[],
  workers: WorkersMode,
): Promise<void> {
  for (const part of parts) await (workers === 'only' ? part.registerHealth?.(app) : part.register?.(app));
}

function startLoops(parts: readonly RunningFeature[], workers: WorkersMode): void {
  for (const part of parts) {
    part.startOwnLoops?.();
    if (workers !== 'none') part.startWorkers?.();
  }
}

/** The parts that the OpenAPI document describes. */
function partsOf({ features, identity, log }: Config): readonly Part[] {
  return [
    ...features,
    ...(identity ? (['identity'] as const) : []),
    'audit',
    ...(log ? (['log'] as const) : []),
  ];
}

/** The part of the grace period that is kept for recording which requests were cut short. */
function lastMomentMs(graceMs: number): number {
  return Math.min(1_000, graceMs / 4);
}

async function refusePendingMigrations(databaseUrl: string): Promise<void> {
  const pending = await pendingMigrations(databaseUrl);
  if (pending.length === 0) return;
  throw new Error(`the database lacks migrations (${pending.join(', ')}): run \`tollbook migrate\` first`);
}

function listeningUrl(address: AddressInfo | string | null, { bindAddress }: Config): string {
  const host = bindAddress.host.includes(':') ? `[${bindAddress.host}]` : bindAddress.host;
  const port = typeof address === 'object' && address ? address.port : bindAddress.port;
  return `http://${host}:${port}`;
}
