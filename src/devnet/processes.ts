import { existsSync, readdirSync, readlinkSync } from 'node:fs';
import { errorCode } from './error-code.ts';

/** Whether a process of this number exists, a zombie included. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errorCode(error) === 'EPERM';
  }
}

/**
 * Whether any live process has `dir` as its working directory; undefined when the system does not show it (no
 * /proc). Zombies do not count: they have no such entry.
 */
export function isWorkedIn(dir: string): boolean | undefined {
  if (!existsSync('/proc/self/cwd')) return undefined;
  return readdirSync('/proc').some((entry) => /^\d+$/.test(entry) && workingDir(entry) === dir);
}

function workingDir(pid: string): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return undefined;
  }
}
