import { readFileSync, realpathSync, rmSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorCode } from './error-code.ts';
import { type Account, type GuardedProcess, startGuarded } from './guarded-process.ts';
import { postgresAccount } from './postgres-account.ts';
import { postgresBinaries } from './postgres-binaries.ts';
import { initialize } from './postgres-cluster.ts';
import { type ClusterPlaces, preparePlaces } from './postgres-places.ts';
import { isWorkedIn } from './processes.ts';

export interface EmbeddedPostgresOptions {
  /** The data directory; created when missing, reused when not. One instance per directory. */
  readonly dir: string;
  /** false trades safety for speed (no fsync): a killed machine may lose or break the data. */
  readonly durable: boolean;
  /** Server settings as in postgresql.conf, over our own. */
  readonly settings?: Readonly<Record<string, string>>;
}

export interface EmbeddedPostgres {
  /** The postmaster. */
  readonly pid: number;
  /** A connection URL for the superuser `postgres`, without a password; database `postgres` if not named. */
  url(database?: string): string;
  /** Shuts down in order (open sessions are ended) and resolves when no process is left. Safe to call twice. */
  stop(): Promise<void>;
}

/**
 * Starts a PostgreSQL of our own from the npm binaries. It listens on a Unix socket in a private directory
 * only, and it ends when this process does, SIGKILL included.
 * @throws with the server's own message when it does not start, also when `dir` is already in use
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const account = postgresAccount();
  const binaries = postgresBinaries(account);
  const places = preparePlaces(options.dir, account);
  await initialize(places, binaries.initdb, options.durable, account);
  const server = await startServer(binaries.postgres, serverArgs(places, options), places, account);
  server.release();
  const host = encodeURIComponent(places.socketDir);
  return {
    pid: server.pid,
    url: (database = 'postgres') => `postgresql://postgres@/${encodeURIComponent(database)}?host=${host}`,
    stop: () => server.stop(),
  };
}

const fastSettings = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' };

function serverArgs(places: ClusterPlaces, { durable, settings }: EmbeddedPostgresOptions): string[] {
  const all = {
    listen_addresses: '',
    unix_socket_directories: places.socketDir,
    max_connections: '200',
    ...(durable ? {} : fastSettings),
    ...settings,
  };
  return [
    '-D',
    places.dataDir,
    ...Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ];
}

const retryEveryMs = 100;
const predecessorTimeoutMs = 15_000;

/** Starts the server, waiting for a predecessor that is still shutting down and ignoring files that a dead one left. */
async function startServer(
  postgres: string,
  args: readonly string[],
  places: ClusterPlaces,
  account: Account | undefined,
): Promise<GuardedProcess> {
  const deadline = performance.now() + predecessorTimeoutMs;
  for (;;) {
    const pidFileBefore = readPidFile(places);
    const server = await startGuarded({ command: postgres, args, stopSignal: 'INT', account });
    if (await server.logged(/ready to accept connections/)) return server;
    const isHeld = /lock file .* already exists|pre-existing shared memory block/.test(server.log());
    if (!isHeld || performance.now() > deadline)
      throw new Error(`PostgreSQL did not start:\n${server.log()}`);
    if (!removeDeadLocks(places, pidFileBefore)) await sleep(retryEveryMs);
  }
}

/**
 * PostgreSQL trusts a lock file whose process number is in use. After a reboot, or in a container, that may be
 * any process. A server's working directory is its data directory: if no process has it, the locks are stale. Locks
 * that changed meanwhile belong to another server that is starting.
 */
function removeDeadLocks(places: ClusterPlaces, pidFileBefore: string | undefined): boolean {
  const isDead = isWorkedIn(realpathSync(places.dataDir)) === false && readPidFile(places) === pidFileBefore;
  if (!isDead) return false;
  rmSync(pidFile(places), { force: true });
  for (const name of ['.s.PGSQL.5432', '.s.PGSQL.5432.lock'])
    rmSync(path.join(places.socketDir, name), { force: true });
  return true;
}

function readPidFile(places: ClusterPlaces): string | undefined {
  try {
    return readFileSync(pidFile(places), 'utf8');
  } catch (error) {
    // an earlier server that shuts down may remove it at any moment
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

function pidFile({ dataDir }: ClusterPlaces): string {
  return path.join(dataDir, 'postmaster.pid');
}
