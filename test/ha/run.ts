import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../src/devnet/ports.ts';
import { checkRun } from '../chaos/checks/check-run.ts';
import type { Violation } from '../chaos/checks/violation.ts';
import { drawPayees, startNetwork } from '../chaos/environment.ts';
import { logVerifierKey } from '../chaos/gateway-config.ts';
import { startGatewaySlot } from '../chaos/gateway-process.ts';
import { waitForCalls } from '../chaos/idle.ts';
import { createRandom, type Random } from '../chaos/random.ts';
import { createRecords } from '../chaos/records.ts';
import { seconds, withRig } from '../chaos/rig.ts';
import { startRunnerSlot } from '../chaos/runner-slot.ts';
import { runTollbook } from '../chaos/tollbook-command.ts';
import { repositoryRoot } from '../support/planted-copy.ts';
import { type Cluster, startCluster } from './cluster.ts';
import { createLedger, differencesOfNodes, ledgerUrl } from './ledger.ts';
import { type Load, startLoad } from './load.ts';
import type { PlantName } from './page-files.ts';
import { type FaultKind, type FaultReport, strike } from './strike.ts';

export interface HaReport {
  readonly faults: readonly FaultReport[];
  /** Why no further fault was made: the nodes did not recover from the last one in time. */
  readonly stuck: string | undefined;
  readonly violations: readonly Violation[];
  /** Between the nodes, and between ledger and anchors. */
  readonly differences: readonly string[];
  readonly payments: { readonly signed: number; readonly landed: number; readonly accepted: number };
  readonly ms: number;
}

export interface HaOptions {
  readonly faults: readonly FaultKind[];
  readonly seed: string;
  readonly clients: number;
  readonly say: (line: string) => void;
  readonly plant?: PlantName | undefined;
  /** Keeps the directory of the run: each node's `var` has the logs of its programs. */
  readonly keeps?: boolean;
}

const gatewayCount = 2;
const limitsMs = { start: 120_000, whole: 120_000, end: 90_000 } as const;

/** Starts everything, strikes the primary again and again while clients pay, and compares all records at the end. */
export function runHa(options: HaOptions): Promise<HaReport> {
  const startedAt = performance.now();
  const { say, clients } = options;
  const random = createRandom(options.seed);
  return withRig(async (rig) => {
    if (options.keeps) say(`logs: ${rig.keepLogs()}`);
    const cluster = await startCluster(rig, gatewayCount, random, options.plant);
    const network = await startNetwork(rig, random.fork('network'));
    await cluster.untilWhole(limitsMs.start);
    const [primary = ''] = cluster.primaries;
    await createLedger(primary);
    say(`three nodes and ${gatewayCount} gateways after ${seconds(performance.now() - startedAt)}`);
    const { payTo, fromBlock } = await drawPayees(network, random);
    const pushPort = await freePort();
    const folder = path.join(rig.dir, 'anchors');
    mkdirSync(folder);
    const gateways = await Promise.all(
      cluster.primaries.map((databaseHost, index) =>
        startGatewaySlot(rig, {
          name: String(index + 1),
          dir: rig.dir,
          config: {
            facilitatorUrl: network.facilitatorUrl,
            rpcUrl: network.chain.url,
            pushUrl: `http://127.0.0.1:${pushPort}`,
            network,
            payTo,
            log: { folder, everyMs: 1_000 },
          },
          databaseUrl: ledgerUrl(databaseHost),
        }),
      ),
    );
    for (const { name, log } of gateways) rig.log(`gateway-${name}.log`, log);
    const urls = gateways.map(({ url }) => url);
    const runners = [
      startRunnerSlot(rig, { mode: 'push', where: String(pushPort) }),
      startRunnerSlot(rig, { mode: 'lease', where: urls[0] ?? '' }),
    ];
    await Promise.all(gateways.map((gateway) => gateway.untilUp()));

    const records = createRecords();
    const load = startLoad({ urls, network, records, clients, random: random.fork('load') });
    const struck = await strikeAll(options, cluster, load, random);
    await load.stop(limitsMs.end);
    const url = ledgerUrl(primary);
    const left = await waitForCalls(url, limitsMs.end);
    const participants = { gateways, runners };
    const found = await checkRun({
      network,
      url,
      participants,
      records,
      payTo,
      fromBlock,
      left,
      mustSell: [],
    });
    const named = ['--checkpoint', folder, '--pubkey', logVerifierKey];
    const verified = await runTollbook({ root: repositoryRoot }, url, ['verify', ...named]);
    return {
      ...struck,
      violations: found.violations,
      differences: [
        ...(await differencesOfNodes(cluster, limitsMs.end)),
        ...(verified.code === 0 ? [] : [`tollbook verify: ${verified.output}`]),
      ],
      payments: { signed: records.signed.size, landed: found.landed, accepted: load.accepted },
      ms: performance.now() - startedAt,
    };
  });
}

async function strikeAll(
  options: HaOptions,
  cluster: Cluster,
  load: Load,
  random: Random,
): Promise<Pick<HaReport, 'faults' | 'stuck'>> {
  const faults: FaultReport[] = [];
  try {
    for (const kind of options.faults) {
      await cluster.untilWhole(limitsMs.whole);
      const before = load.accepted;
      await sleep(random.between(2_000, 5_000));
      const report = await strike(kind, cluster, load);
      faults.push(report);
      const place = `${String(faults.length).padStart(2)}/${options.faults.length}`;
      options.say(`${place}  ${describe(report)}  (${load.accepted - before} payments)`);
    }
    await cluster.untilWhole(limitsMs.whole);
    return { faults, stuck: undefined };
  } catch (error) {
    const stuck = error instanceof Error ? error.message : String(error);
    options.say(`stuck: ${stuck}`);
    return { faults, stuck };
  }
}

function describe({ kind, from, to, promotedMs, resumedMs }: FaultReport): string {
  const start = `${kind.padEnd(7)} ${from}`;
  return promotedMs === undefined
    ? `${start}: no gateway waited longer than ${seconds(resumedMs)}`
    : `${start}, then ${to}: promoted after ${seconds(promotedMs)}, both gateways take payments ${seconds(resumedMs)} later`;
}
