import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import type { Config } from '../base/config/config.ts';
import { addressOf, openDatabase, openPool } from '../ledger/store/database.ts';
import { grantedWriterRole } from '../ledger/store/writer-role.ts';
import { LedgerInconsistentError } from '../ledger/store/halt.ts';
import { openLane } from '../ledger/store/lane.ts';
import { compareConfiguredAnchors } from '../audit/use-cases/log/configured-log.ts';
import { createChainWatch } from './chain-watch.ts';
import { describeNewerDatabase, pendingMigrations } from '../ledger/store/migrations.ts';
import { createHaltAlert } from './halt.ts';
import { createLogger, noteHeartbeat } from './logger.ts';
import { type Ending, shutDownGateway } from './shut-down.ts';
import { explainStart, StartError } from './start-error.ts';
import { ledgerFigures } from './metric-values.ts';
import { openMetrics, type ServedMetrics } from './metrics.ts';
import { tracedLane } from './traced-ledger.ts';
import { type OpenTraces, openTraces } from './traces.ts';
import { composeFeatures, composeRecorders, recordRefusedReload, reloadFeatures } from './features.ts';
import { type AppOptions, createApp } from '../ledger/http/app.ts';
import type { SendProblemPage } from '../ledger/http/errors.ts';
import { createRequestBodies } from '../base/http/request-bodies.ts';
import { createBudget } from '../base/runtime/budget.ts';
import type { AuthorizeCall } from '../payments/peers/facilitator/facilitator-auth.ts';
import type { Mailer } from '../base/peers/mail/mailer.ts';
import type { FeatureParts, RunningFeature } from './feature.ts';
import type { PageAddition } from '../web/pages/visit.ts';
import { gatewayStatusRoutes } from '../accounts/http/gateway-status.ts';
import { referenceRoutes } from './openapi/reference.ts';
import type { FeatureStatus } from '../ledger/http/status.ts';
import type { Loop } from '../ledger/workers/loop.ts';
import { createReadinessChecker, type ReadinessChecker } from '../ledger/workers/readiness-checker.ts';
import { createWorkerWatch, type WorkerWatch } from '../ledger/workers/worker-watch.ts';
import { pause } from '../base/runtime/pause.ts';
import { decideStart, type StartDecision } from '../finance/use-cases/recovery/decide-start.ts';
import { recordContinuation } from '../ledger/store/database-identity.ts';
import { startDatabaseWatch } from '../ledger/workers/database-watch.ts';
import { composeReplicas } from './replicas.ts';
import { listeningUrl, partsOf, type RunningGateway } from './running-gateway.ts';

export type { RunningGateway } from './running-gateway.ts';

export interface GatewayOptions {
  readonly config: Config;
  /** A migrated PostgreSQL, 15 or newer. */
  readonly databaseUrl: string;
  /** Standbys of that PostgreSQL, one an address, which answer reads; none by default. */
  readonly replicaUrls?: readonly string[];
  /** How many connections the gateway opens at most, besides those of its lane. Default: 20. */
  readonly databaseConnections?: number;
  readonly logger?: Logger;
  /**
   * Makes the headers of each request to the facilitator, such as a JWT signed for it; they go over the configured
   * bearer's. Called within the request's own time-out: if it throws or is late, the request is not sent.
   */
  readonly facilitatorAuth?: AuthorizeCall;
  /** Sends the mails of user accounts, instead of the configured mailer. */
  readonly mailer?: Mailer;
  /** What is added to the pages: only for `npm start`. */
  readonly pageAddition?: PageAddition;
  /** What a reload would load: the console shows which prices it would change. Throws a ConfigError. */
  readonly readConfig?: () => Promise<Config>;
  /** Default `all`. */
  readonly workers?: WorkersMode;
  /** Starts quiet whatever the database is: for a copy of the ledger that finance reads. */
  readonly quiet?: boolean;
}

/**
 * Whether a process runs the workers, which do the work of all processes on its ledger. `none`: it serves requests and leaves
 * them to others. `only`: it runs them, and serves nothing but its health.
 */
export type WorkersMode = 'all' | 'none' | 'only';

type Ledger = FeatureParts['ledger'];

interface LedgerOptions extends Pick<GatewayOptions, 'databaseUrl' | 'databaseConnections'> {
  readonly role: string | undefined;
  readonly logger: Logger;
  readonly measured: ServedMetrics | undefined;
  readonly traces: OpenTraces | undefined;
  readonly haltAlert: ReturnType<typeof createHaltAlert>;
}

/**
 * Returns the role that the gateway's connections take; undefined, with a warning, if the database's user may not take it.
 * @throws if migrations are pending
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
 * Throws if the database cannot be reached, lacks migrations, is halted, or the address is taken; a ConfigError if a chain
 * contradicts the configuration. A chain that does not answer does not stop the start.
 */
export async function startGateway(options: GatewayOptions): Promise<RunningGateway> {
  try {
    return await start(options);
  } catch (error) {
    throw explainStart(error, addressOf(options.databaseUrl));
  }
}

async function start(options: GatewayOptions): Promise<RunningGateway> {
  const { config, databaseUrl, quiet: isWanted = false } = options;
  const logger = options.logger ?? createLogger(config.logLevel);
  const role = await checkDatabase(databaseUrl, logger);
  const decision = isWanted ? wantedQuiet : await decide({ config, databaseUrl, role, logger });
  if (decision.kind === 'quiet') {
    const { startQuietGateway } = await import('./quiet-gateway.ts');
    return startQuietGateway({ config, databaseUrl, role, logger, reason: decision.reason, isWanted });
  }
  return startLive({ ...options, logger, role, decision });
}

interface LiveOptions extends GatewayOptions {
  readonly logger: Logger;
  readonly role: string | undefined;
  readonly decision: Extract<StartDecision, { kind: 'live' }>;
}

async function startLive(options: LiveOptions): Promise<RunningGateway> {
  const { config, facilitatorAuth, mailer, workers = 'all', logger, decision } = options;

  const graceMs = config.shutdownGraceSecs * 1_000;
  let stoppedAt: number | undefined;
  let draining = false;
  const isStopping = (): boolean => stoppedAt !== undefined;
  // work that begins in the second half of the grace period could not end in it
  const isTooLate = (): boolean => stoppedAt !== undefined && performance.now() - stoppedAt >= graceMs / 2;
  const isDraining = (): boolean => draining || isStopping();
  const requests = { open: 0 };
  const haltAlert = createHaltAlert(config, logger);
  const measured = await openMetrics(config.metrics);
  const traces = await openTraces(config.traces, logger);
  const ledger = openLedger({ ...options, measured, haltAlert, traces });
  const { lane, pool } = ledger;
  const bodies = createRequestBodies(config.limits.maxBodyMemoryBytes);
  const { reads, features: watching } = await openReads(options, ledger);
  let features = watching;
  const open: AppOptions = { config, logger, bodies, requests, draining: isDraining, stopping: isStopping };
  const app = createApp({ ...open, problemPage: problemPageOf(() => features) });
  traces?.serve(app);
  await measured?.serve(app);
  const publicUrl = publicUrlOf(app, config);
  const chains = createChainWatch(config, logger);
  const workerWatch = createWorkerWatch({ pool, log: logger }, workers !== 'none');
  const loops: Loop[] = [];
  const readiness = watchReadiness(ledger, logger, isDraining);
  let recorders: readonly RunningFeature[] = [];

  const shutDown = (): Promise<Ending> => {
    stoppedAt = performance.now();
    const others = [haltAlert, measured, traces, readiness];
    return shutDownGateway({ graceMs, app, requests, features, recorders, loops, ledger, logger, others });
  };

  try {
    // before anyone is asked: a halted ledger may be a copy
    await refuseHalted(ledger);
    await readiness.begin();
    (await chains.admit(config))();
    const common = { config, ledger, reads, logger, readiness: readiness.present };
    recorders = await composeRecorders(common, () => features);
    await recordProof(lane, decision);
    const composed = composeFeatures({
      ...common,
      bodies,
      budget: createBudget(config.limits.requestsPerMinute),
      isStopping,
      isTooLate,
      publicUrl,
      openApp: () => createApp({ ...open, isPaidApi: true }),
      facilitatorAuth,
      mailer,
      pageAddition: options.pageAddition,
      readConfig: options.readConfig,
      metrics: measured?.metrics,
      tracing: traces?.tracing,
      wrongTokens: () => chains.wrongTokens(),
    });
    for await (const feature of composed) features = [...features, feature];
    const parts = [...features, ...recorders];
    await registerRoutes(app, parts, workers);
    await app.register(statusRoutes(ledger, workerWatch, [chains, ...parts]));
    if (workers !== 'only') await app.register(referenceRoutes(publicUrl, partsOf(config)));
    await measured?.listen([...ledgerFigures(ledger), ...parts.flatMap((part) => part.figures?.() ?? [])]);
    await listen(app, config, workers === 'only' ? [] : parts);
    loops.push(workerWatch.start(), readiness.start(), chains.start());
    loops.push(startDatabaseWatch({ pool, lane, log: logger }));
    startLoops(parts, workers);
  } catch (error) {
    await shutDown();
    throw error;
  }
  let stopped: Promise<Ending> | undefined;
  return {
    url: listeningUrl(app.server.address(), config),
    routesUrl: routesUrlOf(features),
    quiet: undefined,
    quotes: workers === 'only' ? undefined : features.find(({ quotes }) => quotes)?.quotes,
    async reload(next) {
      const putChainsInForce = await chains.admit(next);
      const requireRestart = await reloadFeatures(lane, config, [...features, ...recorders], next);
      putChainsInForce();
      return requireRestart;
    },
    refuseReload: (mistakes) => recordRefusedReload(lane, mistakes),
    async drain() {
      draining = true;
      await pause(config.drainDelaySecs * 1_000);
    },
    stop: () => (stopped ??= shutDown()),
    openRequests: () => requests.open,
  };
}

const wantedQuiet = { kind: 'quiet', reason: 'it was started so' } as const;

/** Whether this start is live or quiet, over a separate connection. */
async function decide({
  config,
  databaseUrl: url,
  role,
  logger,
}: Pick<LiveOptions, 'config' | 'databaseUrl' | 'role' | 'logger'>): Promise<StartDecision> {
  const pool = openPool({ url, role, maxConnections: 2 });
  try {
    const compareAnchors = () => compareConfiguredAnchors(pool, config.log);
    const decision = await decideStart({ pool, compareAnchors });
    if (decision.kind === 'live' && decision.database.systemIdentifier === undefined)
      logger.warn(
        'PostgreSQL does not tell this user its system identifier: start copies of this database with --quiet, for they are not recognised',
      );
    return decision;
  } finally {
    await pool.end();
  }
}

/** That the timeline is another one and nothing is missing, if an anchor has proven it. */
async function recordProof(
  lane: Ledger['lane'],
  { database, continued }: LiveOptions['decision'],
): Promise<void> {
  if (continued) await recordContinuation(lane, continued.recorded, database, continued.proof);
}

function watchReadiness({ pool, lane }: Ledger, logger: Logger, isDraining: () => boolean): ReadinessChecker {
  const onHeartbeat = (): void => noteHeartbeat(logger);
  return createReadinessChecker({ pool, lane, log: logger, isDraining, onHeartbeat });
}

/** This process's connections to the ledger. */
function openLedger(options: LedgerOptions): Ledger {
  const { databaseUrl: url, databaseConnections = 20, role, logger, measured, haltAlert, traces } = options;
  const onError = (err: Error): void => logger.warn({ err }, 'a database connection broke');
  const common = { url, role, onError };
  const pool = openPool({ ...common, maxConnections: databaseConnections });
  const lane = openLane({
    ...common,
    observer: measured?.metrics.lane,
    onHalt: (halt) => haltAlert.send(halt),
  });
  return { pool, db: openDatabase(pool), lane: tracedLane(lane, traces?.tracing) };
}

function openReads({ replicaUrls = [], workers, role, logger: log }: LiveOptions, ledger: Ledger) {
  // a process that serves nothing reads nothing for others
  return composeReplicas({ urls: workers === 'only' ? [] : replicaUrls, role, ledger, log });
}

/** The page of the feature that has pages. */
function problemPageOf(features: () => readonly RunningFeature[]): SendProblemPage {
  return (...asked) =>
    features()
      .find(({ problemPage }) => problemPage)
      ?.problemPage?.(...asked);
}

async function registerRoutes(
  app: FastifyInstance,
  parts: readonly RunningFeature[],
  workers: WorkersMode,
): Promise<void> {
  for (const part of parts) await (workers === 'only' ? part.registerHealth?.(app) : part.register?.(app));
}

/** The address that clients use; of a port that the system chose, once the gateway listens. */
function publicUrlOf(app: FastifyInstance, config: Config): () => string {
  return () =>
    config.bindAddress.port === 0 ? listeningUrl(app.server.address(), config) : config.publicUrl;
}

function routesUrlOf(features: readonly RunningFeature[]): string | undefined {
  return features.find(({ routesUrl }) => routesUrl)?.routesUrl?.();
}

/** Paid routes have an address of their own. */
async function listen(
  app: FastifyInstance,
  { bindAddress: { host, port } }: Config,
  parts: readonly RunningFeature[],
): Promise<void> {
  await app.listen({ host, port });
  for (const part of parts) await part.listen?.();
}

async function refuseHalted({ lane }: Ledger): Promise<void> {
  await lane.refresh();
  if (lane.state.halt) throw new LedgerInconsistentError(lane.state.halt);
}

/** What works, of all parts together. */
function statusRoutes(
  ledger: Ledger,
  { check: workers }: WorkerWatch,
  parts: readonly Pick<RunningFeature, 'status'>[],
) {
  const features = (): FeatureStatus => Object.assign({}, ...parts.map((part) => part.status?.()));
  return gatewayStatusRoutes({ ledger, workers, features });
}

function startLoops(parts: readonly RunningFeature[], workers: WorkersMode): void {
  for (const part of parts) {
    part.startOwnLoops?.();
    if (workers !== 'none') part.startWorkers?.();
  }
}

async function refusePendingMigrations(databaseUrl: string): Promise<void> {
  const newer = await describeNewerDatabase(databaseUrl);
  if (newer !== undefined) throw new StartError(newer);
  const pending = await pendingMigrations(databaseUrl);
  if (pending.length === 0) return;
  throw new Error(`the database lacks migrations (${pending.join(', ')}): run \`tollbook migrate\` first`);
}
