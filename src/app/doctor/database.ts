import { stat, statfs } from 'node:fs/promises';
import type pg from 'pg';
import { databaseWarning, namesDatabase, readDatabaseUrl } from '../../base/config/database-url.ts';
import type { Environment } from '../../base/config/environment.ts';
import { isLoopback } from '../../base/config/hosts.ts';
import { ConfigError } from '../../base/config/mistakes.ts';
import { countOf } from '../../base/values/count-text.ts';
import { addressOf, type DatabaseAddress, isDenied, openPool } from '../../ledger/store/database.ts';
import {
  type DatabaseFacts,
  type DataDirectory,
  findDataDirectory,
  readClockOffset,
  readDatabaseFacts,
} from '../../ledger/store/database-facts.ts';
import { readMigrationState } from '../../ledger/store/migrations.ts';
import { SessionError } from '../../ledger/store/session.ts';
import { findWriterRole, mayAppend } from '../../ledger/store/writer-role.ts';
import { maxClockOffsetMs } from '../../jobs/workers/alert-reporter.ts';
import { explainStart } from '../start-error.ts';
import { type CheckResult, fail, inTwo, ok, warn } from './check-result.ts';
import { mistakesOf } from './configuration.ts';

const what = 'database';
const queryTimeoutMs = 5_000;

/** Checks the database of DATABASE_URL: the server, its sessions, the rights of its user, the ledger in it. */
export async function checkDatabase(env: Environment): Promise<readonly CheckResult[]> {
  let url: string;
  try {
    url = await readDatabaseUrl(env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    if (namesDatabase(env)) return mistakesOf(error, what);
    const set = 'Set DATABASE_URL, or DATABASE_URL_FILE, to the address that the gateway gets.';
    return [fail(what, 'DATABASE_URL is not set', set)];
  }
  const pool = openPool({ url, maxConnections: 1, queryTimeoutMs });
  try {
    return [...warningsOf(url, env), ...(await checkServer(pool, addressOf(url)))];
  } finally {
    // a connection that does not answer must not delay the result
    pool.end().catch(() => {});
  }
}

function warningsOf(url: string, env: Environment): readonly CheckResult[] {
  const warning = databaseWarning(url, env);
  return warning === undefined
    ? []
    : [{ kind: 'warn', what: 'database encryption', ...inTwo(warning.replace(/^environment +/, '')) }];
}

async function checkServer(pool: pg.Pool, address: DatabaseAddress): Promise<readonly CheckResult[]> {
  let facts: DatabaseFacts;
  try {
    facts = await readDatabaseFacts(pool);
  } catch (error) {
    return [explainFault(error, address)];
  }
  const results = [
    checkVersion(facts, address),
    ok('database sessions', 'keep the settings that the ledger relies on, such as synchronous_commit = on'),
    checkConnections(facts),
    ...checkDurability(facts),
    ...(await checkLedger(pool, facts)),
    ...(await checkDisk(pool, address)),
  ];
  return facts.isStandby ? [standby(address), ...results] : results;
}

/** Why no session could be used. */
function explainFault(error: unknown, address: DatabaseAddress): CheckResult {
  const explained = explainStart(error, address);
  const { found, repair } = inTwo(explained instanceof Error ? explained.message : String(explained));
  if (error instanceof SessionError && error.setting !== undefined) {
    const { setting } = error;
    return fail(
      'database sessions',
      found,
      `Have a superuser run: alter role "${address.user}" reset ${setting}; alter database "${address.name}" reset ${setting}; and take ` +
        `it out of DATABASE_URL and postgresql.conf.`,
    );
  }
  return fail(what, found, repair === '' ? 'Repair what this error names, or correct DATABASE_URL.' : repair);
}

const oldestVersion = 15;
const newestVersion = 18;

function checkVersion({ versionNumber, version }: DatabaseFacts, { server, name }: DatabaseAddress) {
  const major = Math.floor(versionNumber / 10_000);
  const found = `PostgreSQL ${version} at ${server}, database ${name}`;
  if (major < oldestVersion)
    return fail(what, found, `Use PostgreSQL ${oldestVersion} to ${newestVersion}: this one is too old.`);
  if (major > newestVersion)
    return warn(
      what,
      found,
      `Use PostgreSQL ${oldestVersion} to ${newestVersion}: this program was not tried with a newer one.`,
    );
  return ok(what, found);
}

function standby({ server }: DatabaseAddress): CheckResult {
  return fail(
    what,
    `${server} is a standby and takes no writes`,
    'Let DATABASE_URL lead to the primary (docs/operations/high-availability.md#one-address-for-the-primary).',
  );
}

/** Of a gateway, and of everything else (docs/operations/capacity.md). */
const gatewayConnections = 25;
const otherConnections = 20;

function checkConnections({ maxConnections }: DatabaseFacts): CheckResult {
  const about = 'database connections';
  if (maxConnections >= gatewayConnections + otherConnections)
    return ok(about, `at most ${maxConnections}: a gateway takes ${gatewayConnections}`);
  return warn(
    about,
    `at most ${maxConnections}, of which a gateway takes ${gatewayConnections}`,
    `Set max_connections to ${gatewayConnections} for each gateway and ${otherConnections} more (docs/operations/capacity.md).`,
  );
}

function checkDurability({
  offSettings,
  receivers,
  hasSynchronousStandby,
}: DatabaseFacts): readonly CheckResult[] {
  const about = 'database durability';
  const durable =
    offSettings.length === 0
      ? ok(about, 'a commit is on the disk before its answer')
      : fail(
          about,
          `a loss of power may lose acknowledged payments: off ${offSettings.length === 1 ? 'is' : 'are'} ${offSettings.join(' and ')}`,
          `Have a superuser run: ${offSettings.map((name) => `alter system set ${name} = on`).join('; ')}; select pg_reload_conf();`,
        );
  if (receivers === 0 || hasSynchronousStandby) return [durable];
  return [
    durable,
    warn(
      'database standbys',
      `${countOf(receivers, 'receiver')} of what the server writes, none synchronous: a failover to one loses acknowledged payments`,
      'If one of them can become primary, name it in synchronous_standby_names (docs/operations/high-availability.md).',
    ),
  ];
}

async function checkLedger(pool: pg.Pool, facts: DatabaseFacts): Promise<readonly CheckResult[]> {
  const about = 'database migrations';
  try {
    const { newer, pending } = await readMigrationState(pool);
    if (newer !== undefined) return [{ kind: 'fail', what: about, ...inTwo(newer) }];
    if (pending.length > 0)
      return [
        fail(
          about,
          `${countOf(pending.length, 'file')} of this version to be applied, such as ${pending[0]}`,
          'Run `tollbook migrate` with the DATABASE_URL of the owner.',
        ),
      ];
    return [ok(about, 'all applied'), await checkRights(pool, facts), await checkClock(pool)];
  } catch (error) {
    if (!isDenied(error)) throw error;
    return [mayNot(facts)];
  }
}

const rights = 'database rights';

function mayNot({ user }: DatabaseFacts): CheckResult {
  return fail(
    rights,
    `the user ${user} may not write to the ledger`,
    `Have the owner run \`tollbook migrate\`, and an administrator grant the writer role to ${user} (docs/operations/roles.md).`,
  );
}

async function checkRights(pool: pg.Pool, facts: DatabaseFacts): Promise<CheckResult> {
  const { user } = facts;
  const role = await findWriterRole(pool);
  if (role === undefined && !(await mayAppend(pool))) return mayNot(facts);
  if (role === undefined)
    return warn(
      rights,
      `the user ${user} may not work as a writer role: the database does not keep the gateway from changing the ledger`,
      'Run `tollbook migrate` with this DATABASE_URL: it makes the role, or prints what an administrator runs (docs/operations/roles.md).',
    );
  if (facts.isOwner)
    return warn(
      rights,
      `the user ${user} owns the ledger: an intruder on this machine could change it`,
      'Give the gateway a user of its own, which may only take the writer role: deploy/create-database.sql makes both (docs/operations/roles.md).',
    );
  return ok(rights, `the user ${user} works as ${role}, which cannot change events`);
}

/** As the alert in docs/operations/prometheus-rules.yml. */
const noticedMs = 2_000;

async function checkClock(pool: pg.Pool): Promise<CheckResult> {
  const about = 'clock';
  const { aheadMs, uncertainMs } = await readClockOffset(pool);
  const offMs = Math.max(0, Math.abs(aheadMs) - uncertainMs);
  if (offMs < noticedMs) return ok(about, "the database's and this machine's agree within 2 seconds");
  const found = `the database's is ${(offMs / 1_000).toFixed(1)} s ${aheadMs > 0 ? 'ahead of' : 'behind'} this machine's`;
  const repair = 'Run NTP on both machines, such as chrony: the database decides about quotes and expiries.';
  return offMs <= maxClockOffsetMs ? warn(about, found, repair) : fail(about, found, repair);
}

const gibibyte = 1 << 30;
const littleShare = 0.1;
const almostNothingShare = 0.02;

/**
 * The free space where the database is. Nothing where it cannot be known: PostgreSQL tells only superusers where its files are, and how
 * much space there is it tells no user, so they must be on this machine.
 */
async function checkDisk(pool: pg.Pool, { server }: DatabaseAddress): Promise<readonly CheckResult[]> {
  const host = server.replace(/:\d+$/, '');
  if (!host.startsWith('/') && !isLoopback(host)) return [];
  const directory = await findDataDirectory(pool);
  if (!directory || !(await isHere(directory))) return [];
  const { bavail, blocks, bsize } = await statfs(directory.path);
  const found = `${((bavail * bsize) / gibibyte).toFixed(1)} GiB free of ${((blocks * bsize) / gibibyte).toFixed(1)} at ${directory.path}`;
  const share = bavail / blocks;
  const repair =
    'Free space there, or move the database: a full disk stops every payment (docs/operations/capacity.md#disk).';
  if (share < almostNothingShare) return [fail('disk', found, repair)];
  if (share < littleShare) return [warn('disk', found, repair)];
  return [ok('disk', found)];
}

/** Whether the directory of this name is that of the server: behind a tunnel or in a container it is another one. */
async function isHere({ path, changedAtSecs }: DataDirectory): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found !== undefined && Math.floor(found.mtimeMs / 1_000) === Math.floor(changedAtSecs);
}
