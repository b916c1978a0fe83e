import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { startGuarded } from '../../src/devnet/guarded-process.ts';
import { postgresAccount } from '../../src/devnet/postgres-account.ts';
import type { Random } from '../chaos/random.ts';
import type { Rig } from '../chaos/rig.ts';
import { until } from '../chaos/until.ts';
import { programs } from './installed.ts';
import { createNode, type Node } from './node.ts';
import { pageFiles, type PlantName, ports } from './page-files.ts';

/** Three nodes, and an HAProxy for each gateway. */
export interface Cluster {
  readonly nodes: readonly Node[];
  /** A host and port for each gateway, which lead to the primary. */
  readonly primaries: readonly string[];
  /** Resolves when all three nodes take part and one of them is the synchronous standby. */
  untilWhole(timeoutMs: number): Promise<void>;
}

const clusterShape = z.object({
  members: z.array(
    z.object({ name: z.string(), role: z.string(), state: z.string(), timeline: z.int().optional() }),
  ),
});

export async function startCluster(
  rig: Rig,
  gateways: number,
  random: Random,
  plant: PlantName | undefined,
): Promise<Cluster> {
  const account = postgresAccount();
  const network = `127.${random.between(1, 254)}.${random.between(1, 254)}.`;
  const place = (name: string, host: number) => {
    const root = path.join(rig.dir, name);
    mkdirSync(root, { recursive: true });
    chmodSync(root, 0o755);
    return { name, network, root, plant, address: `${network}${host}` };
  };
  const nodes: Node[] = [];
  rig.defer(() => Promise.all(nodes.map((node) => node.stop())));
  for (const [index, name] of ['pg1', 'pg2', 'pg3'].entries())
    nodes.push(await createNode(place(name, index + 1), account));
  await Promise.all(nodes.map((node) => node.start()));
  const primaries: string[] = [];
  for (let index = 0; index < gateways; index++) {
    const at = place(`haproxy${index + 1}`, 11 + index);
    const file = path.join(at.root, 'haproxy.cfg');
    writeFileSync(file, pageFiles(at).haproxy);
    const haproxy = { command: programs.haproxy, args: ['-f', file], stopSignal: 'TERM', account } as const;
    const proxy = await startGuarded(haproxy);
    rig.defer(() => proxy.stop());
    primaries.push(`${at.address}:${ports.haproxy}`);
  }

  const stateOf = async (): Promise<z.infer<typeof clusterShape>['members']> => {
    for (const { address } of nodes) {
      try {
        const url = `http://${address}:${ports.patroni}/cluster`;
        const response = await fetch(url, { signal: AbortSignal.timeout(1_000) });
        return clusterShape.parse(await response.json()).members;
      } catch {
        // the next node may answer
      }
    }
    return [];
  };
  return {
    nodes,
    primaries,
    async untilWhole(timeoutMs) {
      let members: Awaited<ReturnType<typeof stateOf>> = [];
      const isWhole = await until(timeoutMs, async () => {
        members = await stateOf();
        const roles = members.map(({ role }) => role).toSorted();
        const isUp = members.every(({ state }) => state === 'running' || state === 'streaming');
        const timelines = new Set(members.map(({ timeline }) => timeline));
        const answers = await Promise.all(nodes.map((node) => node.answers('/health')));
        return (
          isUp &&
          timelines.size === 1 &&
          !answers.includes(false) &&
          roles.join() === 'leader,replica,sync_standby'
        );
      });
      if (isWhole === undefined) throw new Error(`the cluster is not whole: ${JSON.stringify(members)}`);
    },
  };
}
