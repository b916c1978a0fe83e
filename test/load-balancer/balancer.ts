import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { freePort } from '../../src/devnet/ports.ts';
import { startGuarded } from '../../src/devnet/guarded-process.ts';
import { repositoryRoot } from '../support/planted-copy.ts';
import type { Rig } from '../chaos/rig.ts';
import { mustHold } from '../chaos/until.ts';

export interface Balancer {
  readonly url: string;
  /** Resolves when the balancer sends requests to this gateway, from 1 on. */
  untilUp(gateway: number): Promise<void>;
  /** What it counted for each gateway, by the names of HAProxy's statistics. */
  count(): Promise<readonly ServerCounts[]>;
}

export interface ServerCounts {
  readonly name: string;
  /** Requests that it sent to this gateway. */
  readonly requests: number;
  /** Connections that could not be made, and answers that were not whole. */
  readonly errors: number;
  /** Requests that it sent again, or to the other gateway. */
  readonly retries: number;
  /** How often its checks found the gateway away. */
  readonly downs: number;
}

const page = path.join(repositoryRoot, 'docs/operations/haproxy.cfg');
const longestMs = 60_000;

/** HAProxy with the configuration of the documentation; only addresses and ports differ. */
export async function startBalancer(rig: Rig, gateways: readonly string[]): Promise<Balancer> {
  const [port, statusPort] = [await freePort(), await freePort()];
  const file = path.join(rig.dir, 'haproxy.cfg');
  const text = gateways.reduce(
    (all, url, index) => all.replace(`10.0.0.${11 + index}:8402`, new URL(url).host),
    readFileSync(page, 'utf8'),
  );
  writeFileSync(file, text.replaceAll(':8400', `:${port}`).replaceAll(':8404', `:${statusPort}`));
  const haproxy = await startGuarded({
    command: '/usr/sbin/haproxy',
    args: ['-db', '-f', file],
    stopSignal: 'TERM',
  });
  rig.defer(() => haproxy.stop());
  const rows = async (): Promise<Record<string, string>[]> => {
    const response = await fetch(`http://127.0.0.1:${statusPort}/;csv`);
    const [names = '', ...lines] = (await response.text()).replace('# ', '').trim().split('\n');
    return lines.map((line) => {
      const values = line.split(',');
      return Object.fromEntries(names.split(',').map((name, index) => [name, values[index] ?? '']));
    });
  };
  const servers = async () =>
    (await rows()).filter(({ pxname, svname }) => pxname === 'gateways' && svname?.startsWith('gateway'));
  return {
    url: `http://127.0.0.1:${port}`,
    untilUp: (gateway) =>
      mustHold(`the balancer uses gateway ${gateway}`, longestMs, async () => {
        if (haproxy.hasExited()) throw new Error(`HAProxy has ended: ${haproxy.log()}`);
        const found = await servers().catch(() => []);
        const server = found.find(({ svname }) => svname === `gateway${gateway}`);
        // it counts as up before its first check
        return server?.['status'] === 'UP' && server['check_status'] === 'L7OK';
      }),
    async count() {
      return (await servers()).map((row) => {
        const sum = (...names: string[]) => names.reduce((total, name) => total + Number(row[name] ?? 0), 0);
        return {
          name: row['svname'] ?? '',
          requests: sum('stot'),
          errors: sum('econ', 'eresp'),
          retries: sum('wretr', 'wredis'),
          downs: sum('chkdown'),
        };
      });
    },
  };
}
