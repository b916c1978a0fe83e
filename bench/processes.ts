import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** A program of this bench. It ends when its parent ends for any reason. */
export interface Program {
  readonly pid: number;
  readonly url: string;
  ask<T>(question: object): Promise<T>;
  stop(): Promise<void>;
}

export async function startProgram(file: string, args: readonly string[] = []): Promise<Program> {
  const child = fork(path.join(import.meta.dirname, file), args, {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: { NODE_ENV: 'production' },
  });
  const { url } = (await nextMessage(child, file)) as { url: string };
  return {
    pid: child.pid ?? 0,
    url,
    async ask<T>(question: object) {
      const answer = nextMessage(child, file);
      child.send(question);
      return (await answer) as T;
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.kill();
      await ended;
    },
  };
}

function nextMessage(child: ChildProcess, file: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const onExit = (): void => reject(new Error(`${file} ended`));
    child.once('exit', onExit);
    child.once('message', (message) => {
      child.off('exit', onExit);
      resolve(message);
    });
  });
}

/** Linux counts processor time in hundredths of a second. */
const ticksPerSec = 100;

/** Processor seconds that a process, or a server with its child processes, has used so far. */
export function cpuSecs(pid: number, withChildren = false): number {
  const own = readStat(pid);
  if (!own) return 0;
  if (!withChildren) return own.secs;
  const children = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => readStat(Number(name)))
    .filter((stat) => stat?.parent === pid);
  // the parent's counters include children that have ended
  return children.reduce((sum, stat) => sum + (stat?.secs ?? 0), own.secs + own.endedChildrenSecs);
}

/** Processor seconds that the whole machine has used so far. */
export function machineBusySecs(): number {
  const [, user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = readFileSync('/proc/stat', 'utf8')
    .slice(0, 200)
    .split(/\s+/)
    .map(Number);
  return (user + nice + system + irq + softirq) / ticksPerSec;
}

function readStat(pid: number) {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return undefined;
  }
  // the name in parentheses may contain any character; after it come state, parent, …, utime, stime, cutime, cstime
  const fields = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
  const secs = (from: number): number => ((fields[from] ?? 0) + (fields[from + 1] ?? 0)) / ticksPerSec;
  return { parent: fields[1] ?? 0, secs: secs(11), endedChildrenSecs: secs(13) };
}
