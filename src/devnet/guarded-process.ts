import { type ChildProcess, spawn } from 'node:child_process';
import { Socket } from 'node:net';

/** A Unix account to run under. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

export interface GuardedCommand {
  readonly command: string;
  readonly args: readonly string[];
  /** What asks the command to end in order, as `kill -s` names it. */
  readonly stopSignal: 'INT' | 'TERM';
  readonly account?: Account | undefined;
  /** Removed, with its content, once the command has ended in any way. */
  readonly scratchDir?: string;
}

export interface GuardedProcess {
  /** The command itself, not its guard. */
  readonly pid: number;
  hasExited(): boolean;
  /** The last few KiB the command wrote to stderr. */
  log(): string;
  /** Resolves when the log matches (true) or the command has ended (false). */
  logged(pattern: RegExp): Promise<boolean>;
  /** Resolves once the command has ended. */
  exited(): Promise<void>;
  /** From now on neither the command nor its pipes keep this process alive. */
  release(): void;
  /** Ends the command in order; it is killed when that takes over 20 s. Safe to call twice. */
  stop(): Promise<void>;
}

/** The environment of child processes: enough for /bin/sh, and none of this process's variables. */
export const childEnv = { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' } as const;

const logKeptChars = 8192;

/**
 * Descriptor 0 is the end of a pipe that only this process holds: it reaches end of file when this process has ended,
 * by SIGKILL too. The watcher is a loop of the shell itself, so that killing it leaves no process; it also survives
 * when the guard is killed. It repeats the signal, because a command that has just started may not handle it yet, and
 * sends SIGKILL after some 20 s. What the shell writes after this process has ended (the number, "Terminated") must
 * not end it by SIGPIPE: it still has to clean up.
 */
const guardScript = `
umask 077
signal=$1 scratch=$2; shift 2
exec 3<&0 0</dev/null
"$@" 3<&- >/dev/null &
child=$!
trap '' PIPE
{
  while read -r line; do :; done <&3
  tries=0
  while kill -s "$signal" "$child"; do
    tries=$((tries + 1))
    if [ "$tries" -ge 100 ]; then signal=KILL; fi
    sleep 0.2
  done
} >/dev/null 2>&1 &
watcher=$!
echo "$child"
exec 3<&- >/dev/null
wait "$child"; code=$?
kill "$watcher" 2>/dev/null
if [ -n "$scratch" ]; then rm -rf -- "$scratch"; fi
exit "$code"
`;

/**
 * Starts a command that ends when this process does, in a separate session, so that a Ctrl-C at the terminal
 * reaches only us.
 * @throws when /bin/sh or the account cannot be used; a command that fails by itself shows in `exited` and `log`
 */
export async function startGuarded(options: GuardedCommand): Promise<GuardedProcess> {
  const { command, args, stopSignal, account, scratchDir = '' } = options;
  const guard = spawn('/bin/sh', ['-c', guardScript, 'guard', stopSignal, scratchDir, command, ...args], {
    ...account,
    env: childEnv,
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  // writing to a guard that has already ended is not an error
  guard.stdin.on('error', () => undefined);
  const stderr = keepLog(guard);
  const ended = new Promise<void>((resolve) => {
    guard.once('close', () => resolve());
  });
  const pid = await announcedPid(guard);
  return {
    pid,
    hasExited: () => guard.exitCode !== null || guard.signalCode !== null,
    log: () => stderr.text(),
    logged: (pattern) => Promise.race([stderr.matches(pattern), ended.then(() => false)]),
    exited: () => ended,
    release: () => release(guard),
    stop: () => stopGuarded(guard, ended),
  };
}

/** The guard's first and only line names the command's process. */
function announcedPid(guard: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    guard.once('error', reject);
    guard.stdout?.once('data', (line: Buffer) => resolve(Number.parseInt(line.toString('latin1'), 10)));
  });
}

function keepLog(guard: ChildProcess): { text(): string; matches(pattern: RegExp): Promise<true> } {
  let text = '';
  const stream = guard.stderr;
  stream?.setEncoding('utf8').on('data', (chunk: string) => {
    text = (text + chunk).slice(-logKeptChars);
  });
  return {
    text: () => text,
    matches: (pattern) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (!pattern.test(text)) return;
          stream?.off('data', look);
          resolve(true);
        };
        stream?.on('data', look);
        look();
      }),
  };
}

function release(guard: ChildProcess): void {
  guard.unref();
  for (const stream of guard.stdio) if (stream instanceof Socket) stream.unref();
}

async function stopGuarded(guard: ChildProcess, ended: Promise<void>): Promise<void> {
  guard.ref();
  for (const stream of guard.stdio) if (stream instanceof Socket) stream.ref();
  guard.stdin?.end();
  await ended;
}
