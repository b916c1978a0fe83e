import { postgresAccount, isReachable } from './postgres-account.ts';
import {
  readFileSync,
  realpathSync,
  rmSync,
  existsSync,
  readdirSync,
  renameSync,
  chownSync,
  mkdirSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorCode } from './error-code.ts';
import { type Account, type GuardedProcess, startGuarded, childEnv } from './guarded-process.ts';
import { postgresBinaries } from './postgres-binaries.ts';
import { isWorkedIn, isAlive } from './processes.ts';
import { spawn } from 'node:child_process';
import { commonDirFor } from './common-dirs.ts';

interface EmbeddedPostgresOptions {
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
  /** Resolves when the server has ended: its last words if it was not stopped. */
  readonly ended: Promise<string | undefined>;
  /** Shuts down in order (open sessions are ended) and resolves when no process is left. Safe to call twice. */
  stop(): Promise<void>;
}

/**
 * Starts our own PostgreSQL from the npm binaries. It listens on a Unix socket in a private directory
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
  let isStopping = false;
  const endOf = async (): Promise<string | undefined> => {
    await server.exited();
    return isStopping ? undefined : server.log();
  };
  return {
    pid: server.pid,
    ended: endOf(),
    url: (database = 'postgres') => `postgresql://postgres@/${encodeURIComponent(database)}?host=${host}`,
    stop: () => {
      isStopping = true;
      return server.stop();
    },
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
    if (await server.logged(/ready to accept (?:read-only )?connections/)) return server;
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

/**
 * Creates the cluster, if there is none. It gets its name only when it is complete: a PG_VERSION file alone proves
 * nothing, as initdb writes that first.
 * @throws with initdb's own message when it fails
 */
async function initialize(
  places: ClusterPlaces,
  initdb: string,
  durable: boolean,
  account: Account | undefined,
): Promise<void> {
  removeAbandonedDrafts(places.homeDir);
  if (existsSync(places.dataDir)) return;
  const draft = path.join(places.homeDir, `draft-${process.pid}`);
  makePrivate(draft, account);
  try {
    await runInitdb(initdb, draft, durable, account);
    renameSync(draft, places.dataDir);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

function removeAbandonedDrafts(homeDir: string): void {
  for (const entry of readdirSync(homeDir)) {
    const owner = /^draft-(\d+)$/.exec(entry)?.[1];
    const isAbandoned = owner !== undefined && (Number(owner) === process.pid || !isAlive(Number(owner)));
    if (isAbandoned) rmSync(path.join(homeDir, entry), { recursive: true, force: true });
  }
}

function runInitdb(
  initdb: string,
  dataDir: string,
  durable: boolean,
  account: Account | undefined,
): Promise<void> {
  const args = [
    '-D',
    dataDir,
    '-U',
    'postgres',
    '-A',
    'trust',
    '-E',
    'UTF8',
    '--data-checksums',
    '--no-instructions',
  ];
  args.push('--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8');
  if (!durable) args.push('--no-sync');
  return new Promise((resolve, reject) => {
    const child = spawn(initdb, args, {
      ...account,
      env: childEnv,
      cwd: '/',
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let log = '';
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      log += chunk;
    });
    child.once('error', reject);
    child.once('close', (code) => {
      if (code === 0) resolve();
      else reject(new Error(`initdb failed: ${log.trim()}`));
    });
  });
}

/** Where one instance keeps its things; data and socket belong to the account that runs it. */
interface ClusterPlaces {
  readonly homeDir: string;
  readonly dataDir: string;
  readonly socketDir: string;
}

/**
 * Lays out an instance in `dir`. When the account cannot access `dir`, the instance is below /var/tmp, and the file
 * `elsewhere` in `dir` has its path. Deleting that file, as by emptying `dir`, starts with a new instance.
 */
function preparePlaces(dir: string, account: Account | undefined): ClusterPlaces {
  const wanted = path.resolve(dir);
  mkdirSync(wanted, { recursive: true });
  const homeDir = isReachable(wanted, account) ? wanted : homeElsewhere(wanted);
  const socketDir = shortDir(homeDir);
  makePrivate(socketDir, account);
  return { homeDir, dataDir: path.join(homeDir, 'data'), socketDir };
}

function homeElsewhere(wanted: string): string {
  const note = path.join(wanted, 'elsewhere');
  return commonDirFor('pgdata', note, (home) => writeFileSync(note, `${home}\n`));
}

/**
 * Whether an instance in this directory would have its data and its socket there. Otherwise both are in a common directory, which some
 * systems clean up: only for what may be lost.
 */
export function isOwnPlace(dir: string): boolean {
  const wanted = path.resolve(dir);
  mkdirSync(wanted, { recursive: true });
  return isReachable(wanted, postgresAccount()) && isShort(path.join(wanted, 'run'));
}

const maxSocketPathBytes = 107;
const socketName = '.s.PGSQL.5432';

/** The kernel bounds the whole path of a socket. */
function shortDir(homeDir: string): string {
  const inHome = path.join(homeDir, 'run');
  if (isShort(inHome)) return inHome;
  return path.join(
    commonDirFor('pgsocket', homeDir, () => undefined),
    'run',
  );
}

/** Whether a socket may be in this directory. */
function isShort(dir: string): boolean {
  return Buffer.byteLength(path.join(dir, socketName)) <= maxSocketPathBytes;
}

/** Makes a directory that only the account, and root, can enter. */
function makePrivate(dir: string, account: Account | undefined): void {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  if (account !== undefined) chownSync(dir, account.uid, account.gid);
}
