import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { expect, vi } from 'vitest';

interface ProcessFacts {
  readonly pid: number;
  readonly parent: number;
  /** With the number it names a process for good: numbers are used again. */
  readonly startedAt: string;
  readonly words: string;
}

/**
 * The live processes that name a folder in their command line or environment, or work below it, and all their
 * descendants, each with a name of its own. Zombies do not count; a system without /proc tells of none.
 */
export function processesAround(folder: string): string[] {
  return factsAround(folder).map(nameOf);
}

/** Ends all of them: what a failed test left behind must not outlive it. They end by themselves where all is well. */
export async function endProcessesAround(folder: string): Promise<void> {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    for (const { pid } of factsAround(folder)) send(pid, signal);
    const gone = vi.waitFor(() => expect(factsAround(folder)).toEqual([]), { timeout: 15_000 });
    if (await gone.then(() => true).catch(() => false)) return;
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // it was faster
  }
}

function factsAround(folder: string): ProcessFacts[] {
  const all = readProcesses();
  const found = new Set(all.filter(({ words }) => words.includes(folder)).map(({ pid }) => pid));
  for (let before = 0; before < found.size;) {
    before = found.size;
    for (const { pid, parent } of all) if (found.has(parent)) found.add(pid);
  }
  return all.filter(({ pid }) => found.has(pid));
}

/** Which of these processes, as named above, still live. */
export function stillAlive(names: readonly string[]): string[] {
  const all = new Set(readProcesses().map(nameOf));
  return names.filter((name) => all.has(name));
}

function nameOf({ pid, startedAt }: ProcessFacts): string {
  return `${pid} started at ${startedAt}`;
}

function readProcesses(): ProcessFacts[] {
  if (!existsSync('/proc/self/stat')) return [];
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .flatMap((pid) => readProcess(pid) ?? []);
}

function readProcess(pid: string): ProcessFacts | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // the name in parentheses may hold anything, so what follows is counted from its end
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [state, parent] = fields;
    if (state === 'Z') return undefined;
    const words = ['cmdline', 'environ'].map((name) => readFileSync(`/proc/${pid}/${name}`, 'utf8'));
    words.push(readlinkSync(`/proc/${pid}/cwd`));
    return { pid: Number(pid), parent: Number(parent), startedAt: fields[19] ?? '', words: words.join('\0') };
  } catch {
    // it ended while we looked, or is somebody else's
    return undefined;
  }
}
