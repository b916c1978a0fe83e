import { spawn } from 'node:child_process';
import { existsSync, readdirSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { type Account, childEnv } from './guarded-process.ts';
import { type ClusterPlaces, makePrivate } from './postgres-places.ts';
import { isAlive } from './processes.ts';

/**
 * Creates the cluster, if there is none. It gets its name only when it is complete: a PG_VERSION file alone proves
 * nothing, as initdb writes that first.
 * @throws with initdb's own message when it fails
 */
export async function initialize(
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
