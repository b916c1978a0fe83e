import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import type { Config } from '../base/config/config.ts';
import type { Hex } from '../base/values/primitives.ts';
import { receiptRoute } from '../jobs/http/receipt.ts';
import { healthRoutes, statsRoutes } from '../jobs/http/status.ts';
import { logRoutes } from '../audit/http/log.ts';
import { createApp } from '../ledger/http/app.ts';
import { gatewayStatusRoutes } from '../accounts/http/gateway-status.ts';
import { createWaitPlaces } from '../base/http/wait-places.ts';
import { createStreamWatch } from '../calls/use-cases/stream-watch.ts';
import { readyRoutes } from '../ledger/http/ready.ts';
import { referenceRoutes } from './openapi/reference.ts';
import { createRequestBodies } from '../base/http/request-bodies.ts';
import { isReceiptToken, receiptKeysOf } from '../payments/use-cases/receipt-keys.ts';
import { ownLogReader } from '../audit/use-cases/log/log-reader.ts';
import type { Figure } from '../ledger/metrics/metrics.ts';
import { pause } from '../base/runtime/pause.ts';
import { openDatabase, openPool } from '../ledger/store/database.ts';
import type { LedgerReader } from '../ledger/store/ledger.ts';
import { type RecordedHalt, readHalt } from '../ledger/store/recovery.ts';
import { primaryOnly } from '../ledger/use-cases/replicas.ts';
import { readReceiptKey } from '../ledger/store/secrets.ts';
import { startQuietWatch } from '../ledger/workers/database-watch.ts';
import type { Loop } from '../ledger/workers/loop.ts';
import { createReadinessChecker } from '../ledger/workers/readiness-checker.ts';
import { composeBooks } from './books.ts';
import { noteHeartbeat } from './logger.ts';
import { openMetrics } from './metrics.ts';
import { listeningUrl, partsOf, type RunningGateway } from './running-gateway.ts';
import { type Ending, shutDownGateway } from './shut-down.ts';
import { StartError } from './start-error.ts';
import { openAiError } from '../base/errors/openai-error.ts';
import { sendOpenAiError } from '../ledger/http/openai-errors.ts';
import { sendRefusal } from '../ledger/http/errors.ts';

export interface QuietOptions {
  readonly config: Config;
  readonly databaseUrl: string;
  readonly role: string | undefined;
  readonly logger: Logger;
  readonly reason: string;
  /** An operator asked for it: only a restart ends it. */
  readonly isWanted: boolean;
}

/**
 * A gateway that serves only reads. Nothing that could append, or make a request to anyone, is loaded: no lane, no peer, no worker
 * but the one that keeps the read models.
 */
export async function startQuietGateway(options: QuietOptions): Promise<RunningGateway> {
  const { config, databaseUrl: url, role, logger, reason, isWanted } = options;
  const onError = (err: Error): void => logger.warn({ err }, 'a database connection broke');
  const pool = openPool({ url, role, onError, maxConnections: 10 });
  const ledger = { pool, db: openDatabase(pool) };
  const requests = { open: 0 };
  let stopping = false;
  let draining = false;
  const app = createApp({
    config,
    logger,
    requests,
    bodies: createRequestBodies(config.limits.maxBodyMemoryBytes),
    draining: () => draining || stopping,
    stopping: () => stopping,
  });
  const readiness = createReadinessChecker({
    pool,
    lane: { state: { writesRefused: undefined } },
    log: logger,
    isDraining: () => draining || stopping,
    isQuiet: true,
    onHeartbeat: () => noteHeartbeat(logger),
  });
  const measured = await openMetrics(config.metrics);
  const books = composeBooks({ config, ledger, reads: primaryOnly, logger });
  const loops: Loop[] = [];
  const over = Promise.withResolvers<void>();

  const shutDown = (): Promise<Ending> => {
    stopping = true;
    const graceMs = config.shutdownGraceSecs * 1_000;
    const parts = { app, requests, loops, ledger, logger, features: [], recorders: [books] };
    return shutDownGateway({ ...parts, graceMs, others: [measured] });
  };

  try {
    await measured?.serve(app);
    await books.register?.(app);
    await registerReads(app, options, ledger, readiness.present, () => stopping);
    await app.register(referenceRoutes(() => config.publicUrl, partsOf(config)));
    await app.register(quietStatusRoutes(ledger, reason, await readHalt(pool)));
    await app.register(quietRoutes((path) => config.chat !== undefined && path.startsWith('/v1/')));
    await measured?.listen([quietFigure]);
    await app.listen({ host: config.bindAddress.host, port: config.bindAddress.port });
    loops.push(readiness.start());
    if (!isWanted) loops.push(startQuietWatch({ pool, log: logger }, over.resolve));
    books.startWorkers?.();
  } catch (error) {
    await shutDown();
    throw error;
  }
  logger.warn({ reason }, 'quiet: this gateway serves only reads, and makes no request to anyone');
  let stopped: Promise<Ending> | undefined;
  return {
    url: listeningUrl(app.server.address(), config),
    routesUrl: undefined,
    quiet: { reason, over: over.promise },
    quotes: undefined,
    reload: () =>
      Promise.reject(new StartError('the gateway is quiet: a configuration comes into force when it starts')),
    refuseReload: async () => {},
    async drain() {
      draining = true;
      await pause(config.drainDelaySecs * 1_000);
    },
    stop: () => (stopped ??= shutDown()),
    openRequests: () => requests.open,
  };
}

const quietFigure: Figure = {
  name: 'tollbook_quiet',
  help: '1 while the process serves only reads, and makes no request to anyone; missing if it is live',
  read: () => [{ value: 1 }],
};

type Readiness = ReturnType<typeof createReadinessChecker>['present'];

async function registerReads(
  app: FastifyInstance,
  { config, logger: log }: QuietOptions,
  ledger: LedgerReader,
  readiness: Readiness,
  isStopping: () => boolean,
): Promise<void> {
  const receiptKeys = receiptKeysOf(config.jobs?.receiptKeys, await readReceiptKey(ledger.db));
  const reader = ownLogReader(ledger.pool, config.log);
  if (config.jobs) {
    const context = {
      ...ledger,
      config,
      publicUrl: () => config.publicUrl,
      receiptKeys,
      log,
      stopping: isStopping,
      streams: createStreamWatch(ledger, isStopping),
    };
    const places = createWaitPlaces(() => config.limits);
    await app.register(
      receiptRoute({ current: () => context, replicas: primaryOnly, logOn: () => reader, places }),
    );
    await app.register(healthRoutes(readiness));
    await app.register(statsRoutes(ledger, primaryOnly));
  }
  if (config.chat) await app.register(readyRoutes(readiness), { prefix: '/v1' });
  const opensReceipt = (digest: Hex, token: string): boolean =>
    isReceiptToken(receiptKeys, digest, token, log);
  if (reader) await app.register(logRoutes(ledger, reader, opensReceipt));
}

function quietStatusRoutes(ledger: LedgerReader, reason: string, halt: RecordedHalt | undefined) {
  return gatewayStatusRoutes({
    ledger: { ...ledger, lane: { state: { halt, brokenSince: undefined } } },
    workers: () => ({ ok: false, detail: 'a quiet gateway runs none' }),
    features: () => ({ quiet: { status: 'degraded', detail: reason } }),
  });
}

/** Refuses what no other route of a quiet gateway answers, before a body is read. */
function quietRoutes(isChatPath: (url: string) => boolean) {
  return async (app: FastifyInstance): Promise<void> => {
    app.all('/*', {
      onRequest: async (request, reply) => {
        reply.header('cache-control', 'no-store');
        if (isChatPath(request.url)) return sendOpenAiError(request, reply, openAiError('quiet'));
        return sendRefusal(request, reply, 'quiet');
      },
      handler: async () => undefined,
    });
  };
}
