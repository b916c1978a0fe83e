import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, chownSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/devnet/postgres.ts';
import { ask, untilTrue, withOwner } from './sql.ts';

/** A copy of a running server's files, from which a server can be started. */
export interface Backup {
  /** It contains `data/`. */
  readonly dir: string;
}

/** A server that follows another one. */
export interface Standby {
  /** Resolves when the standby streams. */
  untilStreaming(): Promise<void>;
  /** From now on it receives nothing. */
  disconnect(): Promise<void>;
  /** Makes it a primary. */
  promote(): Promise<EmbeddedPostgres>;
}

/** Settings of every server: the log reaches far enough back for a standby. */
export const serverSettings = { recovery_init_sync_method: 'syncfs', wal_keep_size: '512MB' };

const standbyName = 'chaos_standby';
const timeoutMs = 20_000;
/** Of one statement, such as a promotion. */
const longestMs = 60_000;

/** A base backup over SQL: the embedded PostgreSQL has no pg_basebackup. */
export function backUp(url: string, dir: string): Promise<Backup> {
  return withOwner(url, async (client) => {
    const { rows } = await client.query<{ data_directory: string }>('show data_directory');
    const from = rows[0]?.data_directory ?? '';
    const to = path.join(dir, 'data');
    mkdirSync(dir, { recursive: true, mode: 0o755 });
    await client.query(`select pg_backup_start('chaos', true)`);
    await copy(from, to);
    const stopped = await client.query<{ labelfile: string }>('select labelfile from pg_backup_stop(false)');
    // the log up to the end of the backup, which a copy made before lacks
    rmSync(path.join(to, 'pg_wal'), { recursive: true });
    await copy(path.join(from, 'pg_wal'), path.join(to, 'pg_wal'));
    for (const name of ['postmaster.pid', 'postmaster.opts']) rmSync(path.join(to, name), { force: true });
    writeOwned(to, 'backup_label', stopped.rows[0]?.labelfile ?? '');
    return { dir };
  });
}

/** Starts a standby from a backup of the server that listens in this directory. */
export function startStandby({ dir }: Backup, primary: { url: string; socketDir: string }): Standby {
  const data = path.join(dir, 'data');
  writeOwned(data, 'standby.signal', '');
  const conninfo = `host=${primary.socketDir} user=postgres application_name=${standbyName}`;
  appendFileSync(path.join(data, 'postgresql.auto.conf'), `primary_conninfo = '${conninfo}'\n`);
  // it is ready for connections that write only once it is promoted
  const promoted = startEmbeddedPostgres({ dir, durable: true, settings: serverSettings });
  promoted.catch(() => {});
  const ownUrl = `postgresql://postgres@/postgres?host=${encodeURIComponent(path.join(dir, 'run'))}`;
  return {
    untilStreaming: () =>
      mustBecome(
        primary.url,
        `exists (select from pg_stat_replication where application_name = '${standbyName}' and state = 'streaming')`,
      ),
    async disconnect() {
      await run(ownUrl, `alter system set primary_conninfo = ''`);
      await run(ownUrl, `select pg_reload_conf()`);
      await mustBecome(
        primary.url,
        `not exists (select from pg_stat_replication where application_name = '${standbyName}')`,
      );
    },
    async promote() {
      await run(ownUrl, 'select pg_promote(true, 60)');
      return promoted;
    },
  };
}

/** Commits wait until the standby has them. */
export async function makeSynchronous(url: string): Promise<void> {
  await run(url, `alter system set synchronous_standby_names = '${standbyName}'`);
  await run(url, 'select pg_reload_conf()');
  await mustBecome(
    url,
    `exists (select from pg_stat_replication where application_name = '${standbyName}' and sync_state = 'sync')`,
  );
}

/** Starts a server from a backup; what was written after the backup is lost. */
export function startFrom({ dir }: Backup): Promise<EmbeddedPostgres> {
  return startEmbeddedPostgres({ dir, durable: true, settings: serverSettings });
}

/** Files that vanish while they are copied are no error: recovery restores what matters. */
async function copy(from: string, to: string): Promise<void> {
  const child = spawn('cp', ['-a', from, to], { stdio: 'ignore' });
  await once(child, 'exit');
  if (readdirSync(to).length === 0) throw new Error(`${from} could not be copied`);
}

/** PostgreSQL runs under its own account. */
function writeOwned(data: string, name: string, text: string): void {
  const file = path.join(data, name);
  const { uid, gid } = statSync(data);
  writeFileSync(file, text, { mode: 0o600 });
  chownSync(file, uid, gid);
}

/** A standby that starts takes no connections. */
async function run(url: string, statement: string): Promise<void> {
  await ask(url, statement, timeoutMs, longestMs);
}

async function mustBecome(url: string, condition: string): Promise<void> {
  if ((await untilTrue(url, `select ${condition} as holds`, timeoutMs)) === undefined)
    throw new Error(`after ${timeoutMs} ms this does not hold: ${condition}`);
}
