import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { errorCode } from './error-code.ts';
import { isAlive } from './processes.ts';

/** A folder that this process works in, until it unlocks it. */
export type FolderLock =
  | { readonly kind: 'locked'; readonly unlock: () => void }
  | { readonly kind: 'taken'; readonly pid: number };

/** Locks a folder for this process, or returns the process that has the lock. The lock of an ended process is replaced. */
export function lockFolder(dir: string): FolderLock {
  const file = path.join(dir, 'start.pid');
  const draft = `${file}.${process.pid}`;
  // linked into place as a whole: no process reads an incomplete lock
  writeFileSync(draft, identity(process.pid));
  try {
    for (;;) {
      const pid = holder(file);
      if (pid !== undefined) return { kind: 'taken', pid };
      rmSync(file, { force: true });
      if (linked(draft, file)) return { kind: 'locked', unlock: () => rmSync(file, { force: true }) };
    }
  } finally {
    rmSync(draft, { force: true });
  }
}

function linked(draft: string, file: string): boolean {
  try {
    linkSync(draft, file);
    return true;
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false;
    throw error;
  }
}

/** The running process that has the lock; undefined if there is none. */
function holder(file: string): number | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
  const pid = Number(text.split(' ', 1)[0]);
  const lives = Number.isSafeInteger(pid) && pid > 0 && isAlive(pid) && text === identity(pid);
  return lives ? pid : undefined;
}

/** A process and when it began: in a container the next run often gets the number of the last. */
function identity(pid: number): string {
  try {
    const [, afterName = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(/\) (?!.*\) )/);
    return `${pid} ${afterName.split(' ')[19] ?? ''}`;
  } catch {
    return `${pid} `;
  }
}
