import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../src/devnet/ports.ts';
import { packageEnvironment } from './installed.ts';
import { timeLimits } from './time-limits.ts';

/** Of Debian's package `nats-server`. */
const program = '/usr/sbin/nats-server';

export const isNatsInstalled = ((): boolean => {
  try {
    accessSync(program, constants.X_OK);
    return true;
  } catch {
    return false;
  }
})();

export interface NatsServer {
  readonly url: string;
  /** Ends it at once, as a crash of the process does. */
  kill(): Promise<void>;
  /** On the same port and folder. */
  start(): Promise<void>;
}

export interface NatsCluster {
  readonly servers: readonly NatsServer[];
  readonly urls: readonly string[];
  stop(): Promise<void>;
}

export interface NatsOptions {
  readonly servers?: 1 | 3;
  /** For the configuration file of each. */
  readonly settings?: string;
}

/** Real servers with JetStream, on free ports and folders of their own. They end with this process. */
export async function startNatsCluster({
  servers: count = 1,
  settings = 'max_payload: 2MB',
}: NatsOptions = {}): Promise<NatsCluster> {
  const folder = mkdtempSync(path.join(tmpdir(), 'tollbook-nats-'));
  const ports = await Promise.all(
    Array.from({ length: count }, async () => ({ client: await freePort(), route: await freePort() })),
  );
  const routes = ports.map(({ route }) => `nats://127.0.0.1:${route}`).join(', ');
  const servers = ports.map(({ client, route }, index) => {
    const store = path.join(folder, `n${index}`);
    mkdirSync(store);
    const cluster =
      count === 1 ? '' : `cluster { name: test, listen: "127.0.0.1:${route}", routes: [${routes}] }`;
    const file = path.join(folder, `n${index}.conf`);
    writeFileSync(
      file,
      `server_name: n${index}\nlisten: "127.0.0.1:${client}"\n${settings}\n` +
        `jetstream { store_dir: "${store}", max_mem_store: 64MB, max_file_store: 4GB }\n${cluster}\n`,
    );
    return createServer(client, file);
  });
  await Promise.all(servers.map((server) => server.start()));
  return {
    servers,
    urls: servers.map(({ url }) => url),
    async stop() {
      await Promise.all(servers.map((server) => server.kill()));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function createServer(port: number, file: string): NatsServer {
  let child: ChildProcess | undefined;
  return {
    url: `nats://127.0.0.1:${port}`,
    async kill() {
      const killed = child;
      child = undefined;
      if (!killed || killed.exitCode !== null || killed.signalCode !== null) return;
      const exited = once(killed, 'exit');
      killed.kill('SIGKILL');
      await exited;
    },
    async start() {
      const env = packageEnvironment();
      child = spawn('setpriv', ['--pdeathsig', 'KILL', program, '-c', file], { stdio: 'ignore', env });
      await untilListening(port);
    },
  };
}

async function untilListening(port: number): Promise<void> {
  const endsAt = performance.now() + timeLimits.conditionMs;
  while (performance.now() < endsAt) {
    const socket = connect(port, '127.0.0.1');
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (isOpen) return;
    await sleep(50);
  }
  throw new Error(`no nats-server listens on port ${port}`);
}
