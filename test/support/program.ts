import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { onTestFinished } from 'vitest';
import type { ConstantChanges } from '../../src/base/config/constants.ts';
import type { Account } from '../../src/devnet/guarded-process.ts';
import { childEnvironment } from './child-environment.ts';
import { runInProcess } from './run-in-process.ts';
import { eventually } from './wait.ts';

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** `tollbook`, or another program, as its own process. */
export interface Program {
  readonly pid: number;
  readonly stdout: () => string;
  kill(signal: NodeJS.Signals): void;
  /** The first match in its standard output. Throws when the process ends without one. */
  says(pattern: RegExp): Promise<RegExpExecArray>;
  /** Resolves when all processes that hold its output have ended. */
  readonly ended: Promise<Ended>;
  readonly exited: Promise<void>;
}

type Variables = Readonly<Record<string, string>>;

const root = path.resolve(import.meta.dirname, '../..');

/** Of this program, with its source. */
export const commandLine = [
  process.execPath,
  '--import',
  './scripts/check-node.mjs',
  'src/app/cli/tollbook.ts',
] as const;

/** Starts a command with PATH and the given variables only. The caller stops it. */
export function spawnTollbook(args: readonly string[], env: Variables = {}): Program {
  return spawnProgram([...commandLine, ...args], root, env);
}

/** Runs a command, this program's or another, to its end, with a text on its standard input. */
export function spawnInput(
  args: readonly string[],
  input: string,
  [command, ...before]: readonly [string, ...string[]] = commandLine,
): Promise<Ended> {
  const child = spawn(command, [...before, ...args], { cwd: root, stdio: 'pipe', env: childEnvironment() });
  child.stdin.end(input);
  return endOf(child, keep(child.stdout), keep(child.stderr));
}

/** Starts a program with PATH and the given variables only, as another account if one is given. The caller stops it. */
export function spawnProgram(
  [command = '', ...args]: readonly string[],
  cwd: string,
  env: Variables = {},
  account?: Account,
): Program {
  const child = spawn(command, args, {
    ...account,
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...childEnvironment(), ...env },
  });
  const { pid } = child;
  if (pid === undefined) throw new Error(`${command} does not start`);
  const stdout = keep(child.stdout);
  const stderr = keep(child.stderr);
  const ended = endOf(child, stdout, stderr);
  return {
    pid,
    stdout,
    kill: (signal) => child.kill(signal),
    says: (pattern) =>
      Promise.race([
        eventually(() => pattern.exec(stdout()) ?? Promise.reject(new Error(`not said: ${pattern}`))),
        ended.then((end) => pattern.exec(end.stdout) ?? Promise.reject(new Error(JSON.stringify(end)))),
      ]),
    ended,
    exited: new Promise((resolve) => {
      child.once('exit', () => resolve());
    }),
  };
}

/** The same for one test: the command is killed when the test ends. */
export function startTollbook(args: readonly string[], env: Variables = {}): Program {
  const program = spawnTollbook(args, env);
  onTestFinished(() => destroy(program));
  return program;
}

/** Starts `tollbook serve` with other values of constants. The caller stops it. */
export function spawnGateway(file: string, constants: ConstantChanges, env: Variables): Program {
  const [node, ...options] = commandLine;
  const serve = [...options.slice(0, -1), 'test/chaos/serve.ts', JSON.stringify(constants)];
  return spawnProgram([node, ...serve, '--config', file], root, env);
}

/** These serve until they are stopped by a signal, so that they need their own process. */
const servers = new Set(['start', 'devnet', 'serve', 'pricing']);

/** Runs a command to its end, in this process if it is not a server. */
export async function tollbook(args: readonly string[], env: Variables = {}): Promise<Ended> {
  if (servers.has(args[0] ?? '')) return startTollbook(args, env).ended;
  return { ...(await runInProcess(args, env)), signal: null };
}

export async function destroy(program: Program): Promise<void> {
  program.kill('SIGKILL');
  await program.exited;
}

/** A directory that every user account can read: the database runs as another user. The caller removes it. */
export function makeFolder(): string {
  const dir = mkdtempSync(path.join(tmpdir(), 'tollbook-test-'));
  chmodSync(dir, 0o755);
  return dir;
}

/** The same for one test. */
export function temporaryFolder(): string {
  const dir = makeFolder();
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

function keep(stream: NodeJS.ReadableStream): () => string {
  let text = '';
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  return () => text;
}

function endOf(child: ChildProcess, stdout: () => string, stderr: () => string): Promise<Ended> {
  return new Promise((resolve) => {
    child.once('close', (code, signal) => resolve({ code, signal, stdout: stdout(), stderr: stderr() }));
  });
}

/** What a long command wrote on standard error, without the lines of its progress: it writes one every few seconds. */
export function withoutProgress(stderr: string): string {
  return stderr.replaceAll(/^\S+: \d+ of \d+ blocks\n/gm, '');
}
