import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createPublicClient, http } from 'viem';
import { privateKeyToAddress } from 'viem/accounts';
import { lowerCase } from '../../src/devnet/accounts.ts';
import { freePort } from '../../src/devnet/ports.ts';
import { checkRun } from '../chaos/checks/check-run.ts';
import type { Violation } from '../chaos/checks/violation.ts';
import { type PaymentNetwork, startNetwork } from '../chaos/environment.ts';
import { runnerToken } from '../chaos/gateway-process.ts';
import { createRandom, type Random } from '../chaos/random.ts';
import { createRecords } from '../chaos/records.ts';
import { createRunnerSlot } from '../chaos/runner-slot.ts';
import { type Cluster, startCluster } from './cluster.ts';
import { startGateways } from './gateways.ts';
import { ask, createLedger, differencesOfNodes, faultsOfLog, ledgerUrl } from './ledger.ts';
import { startLoad } from './load.ts';
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

const signals = ['SIGINT', 'SIGTERM'] as const;
const gatewayCount = 2;
const limitsMs = { start: 120_000, whole: 120_000, end: 90_000 } as const;

/** Starts everything, strikes the primary again and again while clients pay, and compares all records at the end. */
export async function runHa(options: HaOptions): Promise<HaReport> {
  const startedAt = performance.now();
  const random = createRandom(options.seed);
  const dir = mkdtempSync(path.join(tmpdir(), 'tollbook-ha-'));
  chmodSync(dir, 0o755);
  const closing: (() => Promise<unknown>)[] = [];
  const logs: (() => string)[] = [];
  const close = async (): Promise<void> => {
    for (const end of closing.splice(0).toReversed()) await end();
  };
  const onSignal = (): void => void close().finally(() => process.exit(130));
  for (const signal of signals) process.once(signal, onSignal);
  try {
    const cluster = await startCluster(dir, gatewayCount, random, options.plant);
    closing.push(() => cluster.stop());
    const network = await startNetwork(random.fork('network'), closing);
    await cluster.untilWhole(limitsMs.start);
    const [primary = ''] = cluster.primaries;
    await createLedger(primary);
    options.say(`three nodes and ${gatewayCount} gateways after ${seconds(performance.now() - startedAt)}`);
    return {
      ...(await strikeUnderLoad(options, { dir, cluster, network, random, closing, logs })),
      ms: performance.now() - startedAt,
    };
  } finally {
    for (const signal of signals) process.off(signal, onSignal);
    await close();
    if (options.keeps) {
      writeFileSync(path.join(dir, 'gateways.log'), logs.map((log) => log()).join('\n'));
      options.say(`logs: ${dir}`);
    } else rmSync(dir, { recursive: true, force: true });
  }
}

interface Parts {
  readonly dir: string;
  readonly cluster: Cluster;
  readonly network: PaymentNetwork;
  readonly random: Random;
  readonly closing: (() => Promise<unknown>)[];
  readonly logs: (() => string)[];
}

async function strikeUnderLoad(options: HaOptions, parts: Parts): Promise<Omit<HaReport, 'ms'>> {
  const { cluster, network, random, closing, logs } = parts;
  const { say } = options;
  const payTo = lowerCase(privateKeyToAddress(random.fork('pay to').hex32()));
  const fromBlock = await createPublicClient({ transport: http(network.chain.url) }).getBlockNumber();
  const pushPort = await freePort();
  const { gateways, anchors, verifierKey } = await startGateways({
    dir: parts.dir,
    cluster,
    network,
    pushPort,
    payTo,
  });
  closing.push(() => Promise.all(gateways.map((gateway) => gateway.stop())));
  logs.push(...gateways.map(({ log }) => log));
  const urls = gateways.map(({ url }) => url);
  const runners = [
    createRunnerSlot(['push', String(pushPort), runnerToken]),
    createRunnerSlot(['lease', urls[0] ?? '', runnerToken]),
  ];
  closing.push(() => Promise.all(runners.map((runner) => runner.stop())));
  await Promise.all(gateways.map((gateway) => gateway.untilUp()));

  const records = createRecords();
  const { clients } = options;
  const load = startLoad({ urls, network, records, clients, random: random.fork('load') });
  const faults: FaultReport[] = [];
  let stuck: string | undefined;
  try {
    for (const kind of options.faults) {
      await cluster.untilWhole(limitsMs.whole);
      const before = load.accepted;
      await sleep(random.between(2_000, 5_000));
      const report = await strike(kind, cluster, load);
      faults.push(report);
      const place = `${String(faults.length).padStart(2)}/${options.faults.length}`;
      say(`${place}  ${describe(report)}  (${load.accepted - before} payments)`);
    }
    await cluster.untilWhole(limitsMs.whole);
  } catch (error) {
    stuck = error instanceof Error ? error.message : String(error);
    say(`stuck: ${stuck}`);
  }
  await load.stop(limitsMs.end);

  const [primary = ''] = cluster.primaries;
  const left = await untilWorkIsDone(ledgerUrl(primary));
  const database = { url: () => ledgerUrl(primary) };
  const environment = { chain: network.chain, tokens: network.tokens, postgres: database };
  const participants = { gateways, runners };
  const found = await checkRun({
    environment,
    database: 'ledger',
    participants,
    records,
    payTo,
    fromBlock,
    left,
    mustSell: [],
  });
  const payments = { signed: records.signed.size, landed: found.landed, accepted: load.accepted };
  const differences = [
    ...(await differencesOfNodes(cluster, limitsMs.end)),
    ...(await faultsOfLog(ledgerUrl(primary), anchors, verifierKey)),
  ];
  return {
    faults,
    stuck,
    violations: found.violations,
    differences,
    payments,
  };
}

/** Calls that are still open after the time-out. */
async function untilWorkIsDone(url: string): Promise<string[]> {
  const open = `select 'call ' || call_id || ' is ' || status as words from tollbook.call where status in ('pending', 'ready', 'leased')`;
  const deadline = Date.now() + limitsMs.end;
  for (;;) {
    const left = await ask<{ words: string }>(url, open, limitsMs.end);
    if (left.length === 0 || Date.now() > deadline) return left.map(({ words }) => words);
    await sleep(200);
  }
}

function describe({ kind, from, to, promotedMs, resumedMs }: FaultReport): string {
  const start = `${kind.padEnd(7)} ${from}`;
  return promotedMs === undefined
    ? `${start}: no gateway waited longer than ${seconds(resumedMs)}`
    : `${start}, then ${to}: promoted after ${seconds(promotedMs)}, both gateways take payments ${seconds(resumedMs)} later`;
}

export function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
