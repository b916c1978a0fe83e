import { existsSync, readdirSync, readFileSync } from 'node:fs';

/** The ids of all processes. Empty on a system without /proc. */
export function processIds(): string[] {
  return existsSync('/proc/self/stat') ? readdirSync('/proc').filter((entry) => /^\d+$/.test(entry)) : [];
}

export interface ProcessStat {
  readonly pid: number;
  readonly name: string;
  /** What follows the name: the state, the parent's id and so on, as proc_pid_stat(5) lists them from its third field. */
  readonly fields: readonly string[];
}

/** Throws if the process has ended, or the system has no /proc. */
export function readStat(entry: string): ProcessStat {
  const stat = readFileSync(`/proc/${entry}/stat`, 'utf8');
  // the name in parentheses may contain any character, so fields are counted from its end
  const [opening, closing] = [stat.indexOf('('), stat.lastIndexOf(')')];
  return {
    pid: Number(stat.slice(0, opening)),
    name: stat.slice(opening + 1, closing),
    fields: stat.slice(closing + 2).split(' '),
  };
}

/** The ids given, and those of all descendants among the processes. */
export function withDescendants(
  ids: Iterable<number>,
  all: readonly { readonly pid: number; readonly parent: number }[],
): ReadonlySet<number> {
  const found = new Set(ids);
  for (let before = 0; before < found.size;) {
    before = found.size;
    for (const { pid, parent } of all) if (found.has(parent)) found.add(pid);
  }
  return found;
}
