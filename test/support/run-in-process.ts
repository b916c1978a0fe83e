import { AsyncLocalStorage } from 'node:async_hooks';
import { Writable } from 'node:stream';
import { runCommand } from '../../src/app/cli/run-command.ts';
import { metered } from './meter.ts';

type Variables = Readonly<Record<string, string>>;

interface Run {
  readonly env: NodeJS.ProcessEnv;
  readonly stdout: Kept;
  readonly stderr: Kept;
}

/** Keeps what a command writes. */
class Kept extends Writable {
  readonly #chunks: Buffer[] = [];

  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.#chunks.push(chunk);
    done();
  }

  text(): string {
    return Buffer.concat(this.#chunks).toString('utf8');
  }
}

/** What a command leaves, as a process of its own would. */
export interface CommandEnd {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const runs = new AsyncLocalStorage<Run>();
let isCapturing = false;

/**
 * Runs a command in this process, with the given variables as its whole environment. Commands at the same time keep their output and
 * variables apart. It costs a hundredth of a process, which a test starts only for what concerns one: signals, pipes, the end itself.
 */
export async function runInProcess(args: readonly string[], env: Variables): Promise<CommandEnd> {
  capture();
  const run: Run = { env: { ...env }, stdout: new Kept(), stderr: new Kept() };
  const code = await metered('commands in this process', () => runs.run(run, () => runCommand(args)));
  return { code, stdout: run.stdout.text(), stderr: run.stderr.text() };
}

/** Once for each process: what is written and read outside of a command continues as before. */
function capture(): void {
  if (isCapturing) return;
  isCapturing = true;
  for (const name of ['stdout', 'stderr'] as const) {
    const own = process[name];
    Object.defineProperty(process, name, { get: () => runs.getStore()?.[name] ?? own });
  }
  // oxlint-disable-next-line node/no-process-env -- stands for the environment of a process
  const own = process.env;
  const current = (): NodeJS.ProcessEnv => runs.getStore()?.env ?? own;
  // oxlint-disable-next-line node/no-process-env -- see above
  process.env = new Proxy(own, {
    get: (_, key) => Reflect.get(current(), key) as unknown,
    set: (_, key, value) => Reflect.set(current(), key, value),
    has: (_, key) => Reflect.has(current(), key),
    deleteProperty: (_, key) => Reflect.deleteProperty(current(), key),
    ownKeys: () => Reflect.ownKeys(current()),
    getOwnPropertyDescriptor: (_, key) => Reflect.getOwnPropertyDescriptor(current(), key),
  });
}
