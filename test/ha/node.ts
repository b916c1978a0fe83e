import { chownSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Account, type GuardedProcess, startGuarded } from '../../src/devnet/guarded-process.ts';
import { send } from '../chaos/guarded-child.ts';
import { programs } from './installed.ts';
import { pageFiles, type Place, placed, ports } from './page-files.ts';

/** One node: Patroni with its PostgreSQL, and an etcd member that outlives their faults. */
export interface Node {
  readonly name: string;
  readonly address: string;
  /** A text of the page for this node: its files and addresses. */
  placed(text: string): string;
  /** Starts Patroni, which starts PostgreSQL. */
  start(): Promise<void>;
  /** SIGTERM to Patroni, which stops PostgreSQL in order and gives up the leader's key. */
  halt(): Promise<void>;
  /** SIGKILL to Patroni and to every process of PostgreSQL: the node has lost power. */
  kill(): Promise<void>;
  /** SIGKILL to the postmaster: Patroni sees the crash. */
  crash(): void;
  /** SIGSTOP to all of them: the kernel answers, the programs do not. */
  freeze(): void;
  thaw(): void;
  /** Whether Patroni answers this path of its REST interface with 200. */
  answers(what: '/primary' | '/synchronous' | '/health'): Promise<boolean>;
  stop(): Promise<void>;
}

const askTimeoutMs = 500;

export async function createNode(place: Place, account: Account | undefined): Promise<Node> {
  const { name, address, root } = place;
  const files = pageFiles(place);
  const own = (...parts: string[]): void => {
    const dir = path.join(root, ...parts);
    mkdirSync(dir, { recursive: true, mode: 0o750 });
    if (account) chownSync(dir, account.uid, account.gid);
  };
  for (const dir of ['', 'lib', 'lib/etcd', 'lib/postgresql', 'lib/postgresql/15', 'run', 'run/postgresql'])
    own('var', dir);
  const dataDir = path.join(root, 'var/lib/postgresql/15/ledger');
  const config = path.join(root, 'patroni.yml');
  writeFileSync(config, files.patroni);
  /** Appends what a program writes to a file of the node. */
  const logged = (...command: string[]) => {
    const file = path.join(root, 'var', `${path.basename(command[0] ?? '')}.log`);
    return { command: '/bin/sh', args: ['-c', 'exec "$@" >>"$0" 2>&1', file, ...command] };
  };
  const variables = Object.entries(files.etcd).map(([key, value]) => `${key}=${value}`);
  const etcd = await startGuarded({
    ...logged('/usr/bin/env', ...variables, programs.etcd),
    stopSignal: 'TERM',
    account,
  });
  let patroni: GuardedProcess | undefined;

  /** Postmaster first. Every process of PostgreSQL works in its data directory. */
  const processes = (): number[] => {
    const all = workingIn(dataDir);
    const postmaster = postmasterOf(dataDir);
    return all.toSorted((a, b) => Number(b === postmaster) - Number(a === postmaster));
  };
  const kill = async (): Promise<void> => {
    if (patroni) send(patroni.pid, 'SIGKILL');
    // a backend that starts meanwhile is found by the next look
    for (let all = processes(); all.length > 0; all = processes()) {
      for (const pid of all) send(pid, 'SIGKILL');
      await sleep(5);
    }
    await patroni?.exited();
    patroni = undefined;
  };
  const signalAll = (signal: NodeJS.Signals): void => {
    for (const pid of [patroni?.pid ?? 0, ...processes()]) if (pid > 0) send(pid, signal);
  };

  return {
    name,
    address,
    placed: (text) => placed(text, place).replaceAll('/etc/patroni/config.yml', config),
    async start() {
      patroni = await startGuarded({
        ...logged(programs.patroni, config),
        stopSignal: 'TERM',
        account,
      });
    },
    async halt() {
      await patroni?.stop();
      patroni = undefined;
    },
    kill,
    crash() {
      const pid = postmasterOf(dataDir);
      if (pid !== undefined) send(pid, 'SIGKILL');
    },
    freeze: () => signalAll('SIGSTOP'),
    thaw: () => signalAll('SIGCONT'),
    async answers(what) {
      try {
        const url = `http://${address}:${ports.patroni}${what}`;
        const response = await fetch(url, { signal: AbortSignal.timeout(askTimeoutMs) });
        await response.arrayBuffer();
        return response.status === 200;
      } catch {
        return false;
      }
    },
    async stop() {
      await kill();
      await etcd.stop();
    },
  };
}

function postmasterOf(dataDir: string): number | undefined {
  try {
    return Number.parseInt(readFileSync(path.join(dataDir, 'postmaster.pid'), 'utf8'), 10);
  } catch {
    return undefined;
  }
}

function workingIn(dir: string): number[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .filter((entry) => {
      try {
        return readlinkSync(`/proc/${entry}/cwd`) === dir;
      } catch {
        // it has ended
        return false;
      }
    })
    .map(Number);
}
