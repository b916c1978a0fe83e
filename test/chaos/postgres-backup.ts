import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, chownSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/devnet/postgres.ts';

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
const pollMs = 50;

/** A base backup over SQL: the embedded PostgreSQL has no pg_basebackup. */
export async function backUp(url: string, dir: string): Promise<Backup> {
  const client = await connect(url);
  try {
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
  } finally {
    await client.end();
  }
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
      untilTrue(
        primary.url,
        `select exists (select from pg_stat_replication where application_name = '${standbyName}' and state = 'streaming') as holds`,
      ),
    async disconnect() {
      await run(ownUrl, `alter system set primary_conninfo = ''`);
      await run(ownUrl, `select pg_reload_conf()`);
      await untilTrue(
        primary.url,
        `select not exists (select from pg_stat_replication where application_name = '${standbyName}') as holds`,
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
  await untilTrue(
    url,
    `select exists (select from pg_stat_replication where application_name = '${standbyName}' and sync_state = 'sync') as holds`,
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

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client(url);
  client.on('error', () => {});
  await client.connect();
  return client;
}

async function run(url: string, statement: string): Promise<void> {
  for (let tries = 0; ; tries++) {
    try {
      const client = await connect(url);
      try {
        await client.query(statement);
        return;
      } finally {
        await client.end();
      }
    } catch (error) {
      // a standby that starts takes no connections
      if (tries === 200) throw error;
      await sleep(pollMs);
    }
  }
}

async function untilTrue(url: string, query: string): Promise<void> {
  const client = await connect(url);
  try {
    for (let tries = 0; tries < 400; tries++) {
      const { rows } = await client.query<{ holds: boolean }>(query);
      if (rows[0]?.holds) return;
      await sleep(pollMs);
    }
    throw new Error(`after 20 s this does not hold: ${query}`);
  } finally {
    await client.end();
  }
}
