import type { Logger } from 'pino';
import { migrate } from '../../../ledger/store/migrations.ts';
import { type EmbeddedPostgres, isOwnPlace, startEmbeddedPostgres } from '../../../devnet/postgres.ts';
import {
  databaseWarning,
  readDatabaseUrl,
  readReplicaUrls,
  replicaWarning,
} from '../../../base/config/database-url.ts';
import { processEnvironment } from '../../../base/config/environment.ts';
import { loadConfig, type LoadedConfig, type LoadOptions } from '../../../base/config/load.ts';
import { ConfigError } from '../../../base/config/mistakes.ts';
import { createLogger } from '../../logger.ts';
import type { Ending } from '../../shut-down.ts';
import { type RunningGateway, startGateway, type WorkersMode } from '../../start.ts';
import type { Quiet } from '../../running-gateway.ts';
import { ArgumentError, readOptions } from '../../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';
import { type GoLiveRequest, readGoLive, takeLive } from '../../../finance/terminal/go-live.ts';
import { fail, twoSignals } from '../../../base/terminal/terminal.ts';
import { appCommands } from '../descriptions.ts';

const workersModes = ['all', 'none', 'only'] as const satisfies readonly WorkersMode[];

/** @param options of the configuration: those of a test */
export async function run(args: readonly string[], options: LoadOptions = {}): Promise<ExitCode> {
  const request = readRequest(args);
  const signals = twoSignals();
  // a SIGHUP during the start must not end the process; the configuration was read just now
  process.on('SIGHUP', () => {});
  const env = processEnvironment();
  const load = () => loadConfig(request.file, env, options);
  const loaded = await load();
  const { embeddedDir: dir } = request;
  if (dir === undefined)
    return serve(request, {
      loaded,
      load,
      signals,
      databaseUrl: await readDatabaseUrl(env),
      replicaUrls: await readReplicaUrls(env),
    });
  if (!isOwnPlace(dir))
    throw new ArgumentError(
      `--embedded ${dir}: its path is too long, or the account that runs PostgreSQL may not enter it: name a folder such as /var/lib/tollbook/database`,
    );
  const embedded = await startEmbeddedPostgres({ dir, durable: true });
  try {
    const databaseUrl = embedded.url();
    if (!request.quiet) await migrate(databaseUrl);
    void endWith(embedded);
    return await serve(request, { loaded, load, signals, databaseUrl, replicaUrls: [] });
  } finally {
    await embedded.stop();
  }
}

/** An embedded database that fails ends the gateway: a new start of both is the repair. */
async function endWith({ ended }: EmbeddedPostgres): Promise<void> {
  const log = await ended;
  if (log === undefined) return;
  fail(
    `the embedded database ended, and so does this gateway: start it again. PostgreSQL wrote last:\n${log}`,
  );
  process.exit(exitCodes.notDone);
}

interface Serving {
  readonly loaded: LoadedConfig;
  readonly load: () => Promise<LoadedConfig>;
  readonly signals: ReturnType<typeof twoSignals>;
  readonly databaseUrl: string;
  readonly replicaUrls: readonly string[];
}

async function serve(
  request: Request,
  { loaded, load, signals, databaseUrl, replicaUrls }: Serving,
): Promise<ExitCode> {
  const { config, warnings } = loaded;
  const logger = createLogger(config.logLevel);
  if (request.embeddedDir !== undefined)
    logger.info({ database_url: databaseUrl }, 'the embedded database runs');
  const env = processEnvironment();
  const ofAddresses = [
    databaseWarning(databaseUrl, env),
    ...replicaUrls.map((url) => replicaWarning(url, env)),
  ];
  for (const warning of [...warnings, ...ofAddresses.flatMap((each) => each ?? [])])
    logger.warn({ warning }, 'the configuration has a warning');
  if (request.goLive && !(await takeLive(config, request.file, request.goLive))) return exitCodes.notDone;
  const { workers, quiet } = request;
  const readConfig = async () => (await load()).config;
  const start = () => startGateway({ config, databaseUrl, replicaUrls, logger, workers, quiet, readConfig });
  let gateway = await start();
  const onSignal = reloader(() => gateway, load, logger);
  process.on('SIGHUP', onSignal);
  logger.info({ url: gateway.url }, 'listening');
  while (gateway.quiet && !(await isSignalled(signals.first, gateway.quiet))) {
    logger.info('the database is the ledger now: this gateway goes live');
    await gateway.stop();
    gateway = await start();
    logger.info({ url: gateway.url }, 'listening');
  }
  const signal = await signals.first;
  logger.info({ signal, drain_delay_secs: config.drainDelaySecs }, 'stopping: not ready, and still serving');
  const ended = gateway.drain().then(() => gateway.stop());
  const ending = await Promise.race([ended, signals.second]);
  if (typeof ending === 'object') return logEnd(ending, logger);
  const requestsCut = gateway.openRequests();
  logger.warn({ signal: ending, requests_cut: requestsCut }, 'stopped immediately by a second signal');
  process.exit(exitCodes.notDone);
}

interface Request {
  readonly file: string;
  readonly workers: WorkersMode;
  readonly quiet: boolean;
  readonly goLive: GoLiveRequest | undefined;
  /** Of the embedded database; undefined: that of DATABASE_URL. */
  readonly embeddedDir: string | undefined;
}

function readRequest(args: readonly string[]): Request {
  const { values } = readOptions(appCommands.serve, args);
  const { config: file, quiet, by, why, 'go-live': goesLive, embedded: embeddedDir } = values;
  if (file === undefined) throw new ArgumentError('name the configuration: tollbook serve --config FILE');
  const workers = workersModes.find((mode) => mode === values.workers);
  if (!workers) throw new ArgumentError(`--workers is one of ${workersModes.join(', ')}`);
  if (quiet && goesLive) throw new ArgumentError('--quiet and --go-live exclude each other');
  if (!goesLive && (by !== undefined || why !== undefined))
    throw new ArgumentError('--by and --why belong to --go-live');
  if (goesLive && embeddedDir !== undefined)
    throw new ArgumentError(
      '--go-live needs DATABASE_URL: run `tollbook go-live` while this gateway serves --embedded and --quiet',
    );
  return { file, workers, quiet, embeddedDir, goLive: goesLive ? readGoLive(by, why) : undefined };
}

/** False if the gateway may go live before a signal comes. */
async function isSignalled(first: Promise<NodeJS.Signals>, { over }: Quiet): Promise<boolean> {
  return (await Promise.race([first, over])) !== undefined;
}

/** The last line of the log: how it ended. */
function logEnd({ requestsCut, workLeft }: Ending, logger: Logger): ExitCode {
  const facts = { requests_cut: requestsCut, work_left: workLeft };
  if (requestsCut === 0 && workLeft === 0) logger.info(facts, 'stopped: every request has its answer');
  else
    logger.warn(
      facts,
      'stopped at the end of shutdown_grace_secs: requests were cut; what they had begun is finished by another process',
    );
  return exitCodes.done;
}

/** Reloads run one after the other; a signal during a reload starts another. */
function reloader(
  current: () => RunningGateway,
  load: () => Promise<LoadedConfig>,
  logger: Logger,
): () => void {
  let last = Promise.resolve();
  return () => {
    last = last.then(() => reload(current(), load, logger));
  };
}

async function reload(
  gateway: RunningGateway,
  load: () => Promise<LoadedConfig>,
  logger: Logger,
): Promise<void> {
  try {
    const { config, warnings } = await load();
    for (const warning of warnings) logger.warn({ warning }, 'the configuration has a warning');
    const requireRestart = await gateway.reload(config);
    if (requireRestart.length === 0) logger.info('configuration loaded');
    else
      logger.warn(
        { require_restart: requireRestart },
        'configuration loaded, but changes of these keys require a restart',
      );
  } catch (error) {
    if (!(error instanceof ConfigError))
      return logger.error({ err: error }, 'the configuration could not be loaded');
    logger.error({ mistakes: error.mistakes }, 'the configuration has mistakes; nothing was changed');
    await gateway.refuseReload(error.mistakes.length).catch(() => {});
  }
}
