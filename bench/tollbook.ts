import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startGuarded } from '../src/devnet/guarded-process.ts';
import { freePort } from '../src/devnet/ports.ts';

export interface TollbookOptions {
  readonly databaseUrl: string;
  readonly configText: (port: number) => string;
  readonly readyPath: '/x402/ready' | '/v1/ready';
  /** The path of its configuration file. */
  readonly dir: string;
  readonly nodeOptions?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The command of another checkout. */
  readonly program?: string | undefined;
}

export interface TollbookProcess {
  readonly pid: number;
  readonly url: string;
  stop(): Promise<void>;
}

/** A gateway as an operator runs it: `tollbook serve` in its own process, with one log line per request to /dev/null. */
export async function startTollbook(options: TollbookOptions): Promise<TollbookProcess> {
  const port = await freePort();
  const file = path.join(options.dir, `gateway-${port}.toml`);
  writeFileSync(file, options.configText(port));
  const { program = path.join(import.meta.dirname, '../src/app/cli/tollbook.ts') } = options;
  const server = await startGuarded({
    command: '/usr/bin/env',
    args: [
      `DATABASE_URL=${options.databaseUrl}`,
      ...Object.entries(options.env ?? {}).map(([name, value]) => `${name}=${value}`),
      process.execPath,
      ...(options.nodeOptions ?? []),
      program,
      'serve',
      '--config',
      file,
    ],
    stopSignal: 'TERM',
  });
  server.release();
  const url = `http://127.0.0.1:${port}`;
  try {
    await ready(url + options.readyPath, server);
  } catch (error) {
    await server.stop();
    throw error;
  }
  return { pid: server.pid, url, stop: () => server.stop() };
}

async function ready(url: string, server: { hasExited(): boolean; log(): string }): Promise<void> {
  const deadline = Date.now() + 120_000;
  for (;;) {
    const status = await fetch(url).then(
      (answer) => answer.status,
      () => undefined,
    );
    if (status === 200) return;
    if (server.hasExited() || Date.now() > deadline)
      throw new Error(`Tollbook is not ready: ${server.log()}`);
    await sleep(50);
  }
}
