import { once } from 'node:events';
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { childEnvironment } from '../support/child-environment.ts';

export interface GuardedChild {
  /** Of the command itself, not of its guard. */
  readonly pid: number;
  /** The last part of its output so far, standard output and standard error together. */
  readonly log: () => string;
  /** Calls the listener with each line of standard output. */
  onLine(listener: (line: string) => void): void;
  signal(name: NodeJS.Signals): void;
  /** The exit code of the command; 128 plus the signal's number when a signal ended it. */
  readonly ended: Promise<number>;
}

export interface GuardedChildOptions {
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * Kills the command when descriptor 0 closes, which happens when this process ends for any reason: an orphaned gateway would
 * write into the next run.
 */
const guard = `
exec 3<&0 0</dev/null
"$@" 3<&- 4>&- &
child=$!
{ while read -r line; do :; done <&3; kill -s KILL "$child"; } >/dev/null 2>&1 4>&- &
watcher=$!
echo "$child" >&4
exec 3<&- 4>&-
wait "$child"; code=$?
kill "$watcher" 2>/dev/null
exit "$code"
`;

const logChars = 200_000;

/** Starts a Node program that cannot outlive this process. */
export async function startGuardedChild({ args, cwd, env = {} }: GuardedChildOptions): Promise<GuardedChild> {
  const child = spawn('/bin/sh', ['-c', guard, 'guard', process.execPath, ...args], {
    cwd,
    env: { ...childEnvironment(), ...env },
    stdio: ['pipe', 'pipe', 'pipe', 'ignore', 'pipe'],
    detached: true,
  }) as ChildProcessWithoutNullStreams;
  child.stdin.on('error', () => {});
  let log = '';
  const keep = (text: string): void => {
    log = (log + text).slice(-logChars);
  };
  child.stderr.setEncoding('utf8').on('data', keep);
  child.stdout.setEncoding('utf8').on('data', keep);
  const ended = once(child, 'close').then(([code]) => Number(code ?? 255));
  const [announced] = (await once((child.stdio as unknown[])[4] as Readable, 'data')) as [Buffer];
  const pid = Number.parseInt(announced.toString('latin1'), 10);
  let isOver = false;
  void ended.then(() => (isOver = true));
  return {
    pid,
    log: () => log,
    onLine(listener) {
      let rest = '';
      child.stdout.on('data', (text: string) => {
        const lines = (rest + text).split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) listener(line);
      });
    },
    signal(name) {
      // a process id that is free again may belong to another process
      if (!isOver) send(pid, name);
    },
    ended,
  };
}

/** Sends a signal to a process that may have ended. */
export function send(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // the process had ended already
  }
}
