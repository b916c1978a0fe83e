import { stat, statfs } from 'node:fs/promises';
import type pg from 'pg';
import { isLoopback } from '../../base/config/hosts.ts';
import type { DatabaseAddress } from '../../ledger/store/database.ts';
import { type DataDirectory, findDataDirectory } from '../../ledger/store/database-facts.ts';
import { type CheckResult, fail, ok, warn } from './check-result.ts';

const gibibyte = 1 << 30;
const littleShare = 0.1;
const almostNothingShare = 0.02;

/**
 * The free space where the database is. Nothing where it cannot be known: PostgreSQL tells only superusers where its files are, and how
 * much space there is it tells no user, so they must be on this machine.
 */
export async function checkDisk(pool: pg.Pool, { server }: DatabaseAddress): Promise<readonly CheckResult[]> {
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
