import { chownSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { commonDirFor } from './common-dirs.ts';
import type { Account } from './guarded-process.ts';
import { isReachable } from './postgres-account.ts';

/** Where one instance keeps its things; data and socket belong to the account that runs it. */
export interface ClusterPlaces {
  readonly homeDir: string;
  readonly dataDir: string;
  readonly socketDir: string;
}

/**
 * Lays out an instance in `dir`. When the account cannot access `dir`, the instance is below /var/tmp, and the file
 * `elsewhere` in `dir` has its path. Deleting that file, as by emptying `dir`, starts with a new instance.
 */
export function preparePlaces(dir: string, account: Account | undefined): ClusterPlaces {
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

const maxSocketPathBytes = 107;
const socketName = '.s.PGSQL.5432';

/** The kernel bounds the whole path of a socket. */
function shortDir(homeDir: string): string {
  const inHome = path.join(homeDir, 'run');
  if (Buffer.byteLength(path.join(inHome, socketName)) <= maxSocketPathBytes) return inHome;
  return path.join(
    commonDirFor('pgsocket', homeDir, () => undefined),
    'run',
  );
}

/** Makes a directory that only the account, and root, can enter. */
export function makePrivate(dir: string, account: Account | undefined): void {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  if (account !== undefined) chownSync(dir, account.uid, account.gid);
}
