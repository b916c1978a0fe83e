import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { processEnvironment } from '../../../base/config/environment.ts';
import type { Devnet } from '../../../devnet/devnet.ts';
import { thisProgram } from './this-program.ts';

/** The addresses and keys of a running devnet. */
export type DevnetFacts = Omit<Devnet, 'stop'>;

/** Starts the devnet in a separate process; adds the function that ends it to `stops`. */
export async function startDevnetProcess(
  dir: string,
  stops: (() => Promise<unknown>)[],
  chainPort: number | undefined,
): Promise<DevnetFacts> {
  const { PATH = '' } = processEnvironment();
  const port = chainPort === undefined ? [] : ['--chain-port', String(chainPort)];
  const args = [thisProgram, 'devnet', '--dir', dir, ...port];
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    env: { PATH },
    // Ctrl-C in the terminal must not reach the devnet: it ends after the gateway
    detached: true,
  });
  stops.push(() => endChild(child));
  const ready = once(child, 'message') as Promise<[DevnetFacts]>;
  const ended = once(child, 'exit').then(() => {
    throw new Error('the devnet ended before it was ready');
  });
  const [facts] = await Promise.race([ready, ended]);
  ended.catch(() => {});
  return facts;
}

async function endChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  await exited;
}
