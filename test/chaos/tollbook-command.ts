import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { childEnvironment } from '../support/child-environment.ts';
import { gatewaySecrets } from './gateway-config.ts';

/** How a command ended, and the last of what it printed. */
export interface Ended {
  readonly code: number | null;
  readonly output: string;
}

/** Runs a command of the program under test on a database, as an operator does. */
export async function runTollbook(
  { root }: { readonly root: string },
  url: string,
  args: readonly string[],
): Promise<Ended> {
  const child = spawn(process.execPath, ['src/app/cli/tollbook.ts', ...args], {
    cwd: root,
    env: { ...childEnvironment(), DATABASE_URL: url, ...gatewaySecrets },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, output: output.slice(-2_000) };
}
