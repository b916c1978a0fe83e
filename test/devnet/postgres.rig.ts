import { spawn } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { Client } from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startEmbeddedPostgres } from '../../src/devnet/postgres.ts';
import { isAlive, isWorkedIn } from '../../src/devnet/processes.ts';
import { startInChild, temporaryDir, until } from './killable.ts';

describe('the embedded PostgreSQL', () => {
  test('keeps its data from one start to the next, and leaves no process', async () => {
    const dir = temporaryDir();
    const first = await startEmbeddedPostgres({ dir, durable: true });
    await query(first.url(), "CREATE TABLE kept AS SELECT 'ü' AS text");
    await first.stop();
    await first.stop();
    expect(isAlive(first.pid)).toBe(false);
    expect(isWorkedIn(path.join(dir, 'data'))).not.toBe(true);

    const second = await startEmbeddedPostgres({ dir, durable: true });
    expect(await query(second.url(), 'SELECT text FROM kept')).toEqual([{ text: 'ü' }]);
    await second.stop();
  });

  test('uses UTF-8 and a fixed locale, has checksums, and does not listen on the network', async () => {
    const server = await startEmbeddedPostgres({
      dir: temporaryDir(),
      durable: false,
      settings: { work_mem: '9MB' },
    });
    const [facts] = await query(
      server.url(),
      `SELECT current_setting('data_checksums') AS checksums, current_setting('listen_addresses') AS addresses,
              current_setting('server_encoding') AS encoding, current_setting('work_mem') AS work_mem, datlocprovider, datlocale
         FROM pg_database WHERE datname = current_database()`,
    );
    await server.stop();
    const locale = { datlocprovider: 'b', datlocale: 'C.UTF-8' };
    expect(facts).toEqual({ checksums: 'on', addresses: '', encoding: 'UTF8', work_mem: '9MB', ...locale });
  });

  test('ends when its parent is killed, and starts again immediately', async () => {
    const dir = temporaryDir();
    const { pid, killParent } = await startInChild('postgres', dir);
    expect(isAlive(pid)).toBe(true);
    await killParent();
    const successor = await startEmbeddedPostgres({ dir, durable: true });
    await until(() => !isAlive(pid));
    expect(await query(successor.url(), 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    await successor.stop();
  });
});

describe('the embedded PostgreSQL, after a crash or in an unusual directory,', () => {
  test('removes a lock whose process number now belongs to another process', async () => {
    const dir = temporaryDir();
    const pidFile = path.join(dir, 'data', 'postmaster.pid');
    const first = await startEmbeddedPostgres({ dir, durable: true });
    const lock = readFileSync(pidFile, 'utf8');
    await first.stop();
    // A number in use, by no server. It has to be the account's own: others' PostgreSQL passes over by itself.
    const { uid, gid } = statSync(path.dirname(pidFile));
    const stranger = spawn('/bin/sleep', ['60'], { uid, gid, cwd: '/', stdio: 'ignore' });
    onTestFinished(() => {
      stranger.kill();
    });
    writeFileSync(pidFile, lock.replace(/^\d+/, String(stranger.pid)));
    expect(await serves(dir)).toBe(true);
  });

  test('creates a new cluster after an initdb that was killed', async () => {
    const dir = temporaryDir();
    const whole = await startEmbeddedPostgres({ dir, durable: true });
    await whole.stop();
    // what a killed initdb leaves: part of a cluster, in the draft directory of a process that has ended
    renameSync(path.join(dir, 'data'), path.join(dir, 'draft-999999999'));
    expect(await serves(dir)).toBe(true);
    expect(readdirSync(dir).toSorted()).toEqual(['data', 'run']);
  });

  test("reports the server's own error when it does not start", async () => {
    const settings = { shared_buffers: 'plenty' };
    const starting = startEmbeddedPostgres({ dir: temporaryDir(), durable: false, settings });
    await expect(starting).rejects.toThrow(/did not start:[^]*shared_buffers/);
  });

  test.runIf(process.getuid?.() === 0)(
    'as root, goes elsewhere when its account cannot reach the directory',
    async () => {
      const dir = temporaryDir();
      chmodSync(dir, 0o700);
      const first = await startEmbeddedPostgres({ dir, durable: false });
      const home = readFileSync(path.join(dir, 'elsewhere'), 'utf8').trim();
      await query(first.url(), 'CREATE TABLE kept ()');
      await first.stop();
      const second = await startEmbeddedPostgres({ dir, durable: false });
      expect(await query(second.url(), "SELECT to_regclass('kept')::text AS kept")).toEqual([
        { kept: 'kept' },
      ]);
      await second.stop();

      // emptying the directory starts with a new instance
      rmSync(path.join(dir, 'elsewhere'));
      const third = await startEmbeddedPostgres({ dir, durable: false });
      expect(await query(third.url(), "SELECT to_regclass('kept') AS kept")).toEqual([{ kept: null }]);
      await third.stop();
      rmSync(home, { recursive: true });
    },
  );

  test('uses a short path for its socket when the directory is deep', async () => {
    const dir = path.join(temporaryDir(), 'deep-'.repeat(30));
    mkdirSync(dir);
    expect(await serves(dir)).toBe(true);
  });

  test('starts several instances concurrently, each in its own directory', async () => {
    const servers = await Promise.all(
      [1, 2, 3].map(() => startEmbeddedPostgres({ dir: temporaryDir(), durable: false })),
    );
    expect(new Set(servers.map((server) => server.pid)).size).toBe(3);
    await Promise.all(servers.map((server) => server.stop()));
  });
});

/** Whether an instance comes up in this directory and answers. */
async function serves(dir: string): Promise<boolean> {
  const server = await startEmbeddedPostgres({ dir, durable: false });
  const answer = await query(server.url(), 'SELECT 1 AS one');
  await server.stop();
  return answer.length === 1;
}

async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows;
  } finally {
    await client.end();
  }
}
