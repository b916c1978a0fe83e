import { closeSync, existsSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { isAlive } from './processes.ts';

/** A folder that this process works in, until it unlocks it. */
export type FolderLock =
  | { readonly kind: 'locked'; readonly unlock: () => void }
  | { readonly kind: 'taken'; readonly pid: number };

/** Locks a folder for this process; tells who has it where somebody does. A lock whose process is gone is taken over. */
export function lockFolder(dir: string): FolderLock {
  const file = path.join(dir, 'start.pid');
  if (existsSync(file)) {
    const pid = Number(readFileSync(file, 'utf8'));
    if (Number.isSafeInteger(pid) && pid > 0 && isAlive(pid)) return { kind: 'taken', pid };
    rmSync(file, { force: true });
  }
  const handle = openSync(file, 'wx');
  writeFileSync(handle, String(process.pid));
  closeSync(handle);
  return { kind: 'locked', unlock: () => rmSync(file, { force: true }) };
}
