import { AsyncLocalStorage } from 'node:async_hooks';
import { runCommand } from '../../src/cli/run-command.ts';
import { metered } from './meter.ts';

type Variables = Readonly<Record<string, string>>;

interface Run {
  readonly env: NodeJS.ProcessEnv;
  stdout: string;
  stderr: string;
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
  const run: Run = { env: { ...env }, stdout: '', stderr: '' };
  const code = await metered('commands in this process', () => runs.run(run, () => runCommand(args)));
  return { code, stdout: run.stdout, stderr: run.stderr };
}

/** Once for each process: what is written and read outside of a command goes on as before. */
function capture(): void {
  if (isCapturing) return;
  isCapturing = true;
  for (const name of ['stdout', 'stderr'] as const) {
    const stream = process[name];
    const write = stream.write.bind(stream);
    stream.write = (chunk: string | Uint8Array, ...rest: never[]) => {
      const run = runs.getStore();
      if (!run) return write(chunk, ...rest);
      run[name] += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8');
      for (const last of rest as unknown[]) if (typeof last === 'function') last();
      return true;
    };
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
