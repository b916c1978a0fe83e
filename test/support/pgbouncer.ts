import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { inject, onTestFinished } from 'vitest';
import { freePort } from '../../src/devnet/ports.ts';
import { postgresAccount } from '../../src/devnet/postgres-account.ts';
import { isInstalled, notChecked, packageEnvironment } from './installed.ts';
import { temporaryFolder } from './program.ts';
import { eventually } from './wait.ts';

/** Added to the names of tests that need it; empty where it is installed. */
export const noPgbouncer = notChecked('CONNECTION POOLER', isInstalled('pgbouncer') ? [] : ['pgbouncer']);

export interface Pgbouncer {
  /** The URL of a database through the pooler. */
  urlOf(databaseUrl: string): string;
}

/** A real connection pooler before the tests' PostgreSQL, until the test ends. */
export async function startPgbouncer(settings: Readonly<Record<string, string>>): Promise<Pgbouncer> {
  const { host, port, user, password } = new pg.Client({ connectionString: inject('serverUrl') });
  const folder = temporaryFolder();
  chmodSync(folder, 0o755);
  const own = await freePort();
  const upstream = [
    `host=${host}`,
    `port=${port}`,
    `user=${user ?? ''}`,
    ...(password ? [`password=${password}`] : []),
  ];
  const all = {
    listen_addr: '127.0.0.1',
    listen_port: String(own),
    auth_type: 'any',
    unix_socket_dir: '',
    max_client_conn: '100',
    ...settings,
  };
  const file = path.join(folder, 'pgbouncer.ini');
  writeFileSync(
    file,
    `[databases]\n* = ${upstream.join(' ')}\n[pgbouncer]\n` +
      Object.entries(all)
        .map(([name, value]) => `${name} = ${value}\n`)
        .join(''),
  );
  const child = spawn('pgbouncer', ['-q', file], {
    ...postgresAccount(),
    env: packageEnvironment(),
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.on('data', (part: Buffer) => (said += part.toString()));
  onTestFinished(async () => {
    if (child.exitCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  });
  const urlOf = (databaseUrl: string): string => {
    const { database = '' } = new pg.Client({ connectionString: databaseUrl });
    return `postgresql://${user ?? 'postgres'}@127.0.0.1:${own}/${database}`;
  };
  await eventually(async () => {
    if (child.exitCode !== null) throw new Error(`pgbouncer ended: ${said}`);
    const client = new pg.Client(urlOf(inject('serverUrl').replace('DATABASE', 'postgres')));
    await client.connect();
    await client.end();
  });
  return { urlOf };
}
