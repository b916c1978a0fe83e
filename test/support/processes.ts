import { readFileSync, readlinkSync } from 'node:fs';
import { expect, vi } from 'vitest';
import { processIds, readStat, withDescendants } from './proc.ts';
import { timeLimits } from './time-limits.ts';

interface ProcessFacts {
  readonly pid: number;
  readonly parent: number;
  /** Start time: with the process id it identifies a process, since ids are reused. */
  readonly startedAt: string;
  readonly words: string;
}

/**
 * The live processes that have a directory in their command line, environment or working directory, and all their
 * descendants, by id and start time. Zombies do not count. Empty on a system without /proc.
 */
export function processesAround(folder: string): string[] {
  return factsAround(folder).map(nameOf);
}

/** Kills all of them, so that processes of a failed test do not outlive it. After a successful test there are none. */
export async function endProcessesAround(folder: string): Promise<void> {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    signalProcessesAround(folder, signal);
    const gone = vi.waitFor(() => expect(factsAround(folder)).toEqual([]), {
      timeout: timeLimits.conditionMs,
    });
    if (await gone.then(() => true).catch(() => false)) return;
  }
}

/** Sends all of them a signal, as systemd does when it stops a service. */
export function signalProcessesAround(folder: string, signal: NodeJS.Signals): void {
  for (const { pid } of factsAround(folder)) send(pid, signal);
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // the process had ended already
  }
}

function factsAround(folder: string): ProcessFacts[] {
  const all = readProcesses();
  const around = all.filter(({ words }) => words.includes(folder));
  const found = withDescendants(
    around.map(({ pid }) => pid),
    all,
  );
  return all.filter(({ pid }) => found.has(pid));
}

/** The processes of the list that are still alive. */
export function stillAlive(names: readonly string[]): string[] {
  const all = new Set(readProcesses().map(nameOf));
  return names.filter((name) => all.has(name));
}

function nameOf({ pid, startedAt }: ProcessFacts): string {
  return `${pid} started at ${startedAt}`;
}

function readProcesses(): ProcessFacts[] {
  return processIds().flatMap((pid) => readProcess(pid) ?? []);
}

function readProcess(pid: string): ProcessFacts | undefined {
  try {
    const { fields } = readStat(pid);
    const [state, parent] = fields;
    if (state === 'Z') return undefined;
    const words = ['cmdline', 'environ'].map((name) => readFileSync(`/proc/${pid}/${name}`, 'utf8'));
    words.push(readlinkSync(`/proc/${pid}/cwd`));
    return { pid: Number(pid), parent: Number(parent), startedAt: fields[19] ?? '', words: words.join('\0') };
  } catch {
    // the process ended meanwhile, or belongs to another user
    return undefined;
  }
}
