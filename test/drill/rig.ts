import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { privateKeyToAddress } from 'viem/accounts';
import { devnetKeys, lowerCase } from '../../src/devnet/accounts.ts';
import { deployCheckpointAnchor } from '../../src/devnet/checkpoint-anchor.ts';
import { freePort } from '../../src/devnet/ports.ts';
import { startEchoRunner } from '../../src/devnet/runner.ts';
import { createRunner, job, type Runner } from '../../src/runner/index.ts';
import { type Environment, startEnvironment } from '../chaos/environment.ts';
import { chaosConstants, type GatewaySlot, startGatewaySlot } from '../chaos/gateway-process.ts';
import { type Peer, startPeer } from '../chaos/peer.ts';
import { createRandom } from '../chaos/random.ts';
import type { Rig } from '../chaos/rig.ts';
import { runnerToken } from '../chaos/runner-work.ts';
import { type Customers, startCustomers } from './customers.ts';
import { type Prometheus, startPrometheus } from './prometheus.ts';
import { startWire, type Wire } from './wire.ts';

/** A gateway process, its own way to the database, and the file that says how wrong its clock is. */
export interface DrillGateway {
  readonly slot: GatewaySlot;
  readonly wire: Wire;
  readonly clockFile: string;
}

/** All that the drill runs: gateways, their peers, customers, and a Prometheus that scrapes the gateways. */
export interface DrillRig {
  readonly environment: Environment;
  /** The database's owner's. */
  readonly databaseUrl: () => string;
  readonly gateways: readonly DrillGateway[];
  readonly facilitator: Peer;
  readonly chain: Peer;
  /** Gets the calls of service 1. */
  readonly runner: Peer;
  readonly upstream: Peer;
  /** Says the rate of the second token. */
  readonly rates: Peer;
  /** Where the gateways look for the listing of job 1/0. */
  readonly discovery: Discovery;
  readonly prometheus: Prometheus;
  /** The alerts that the gateways have sent themselves, oldest first. */
  readonly told: readonly ToldAlert[];
  readonly customers: Customers;
  /** A folder that takes checkpoints. */
  readonly anchorFolder: string;
  /** The runner that fetches the calls of service 2. */
  startPoller(): void;
  stopPoller(): Promise<void>;
}

export interface ToldAlert {
  readonly type: string;
  readonly status: 'firing' | 'resolved';
  readonly text: string;
}

export interface Discovery {
  readonly peer: Peer;
  /** Whether the job is listed. */
  isListed: boolean;
}

const database = 'drill';
export const pushRunnerName = 'runner-1';
/** Follows the events of a contract over the RPC of the payments. */
export const followingTrigger = 'events';
const freeModel = 'drill-free';
/** The key that publishes checkpoints on the chain. */
export const anchorKey = devnetKeys.thirdSpare;
/** Calls are delivered until their runner is back, and become dead letters only if it refuses them. */
const maxAttempts = 1_000;

export async function startDrillRig(rig: Rig, rules: string): Promise<DrillRig> {
  const environment = await startEnvironment(rig, createRandom('alert drill'));
  await environment.createDatabase(database);
  const checkpoints = await deployCheckpointAnchor(environment.chain);
  const echo = rig.keep(await startEchoRunner({ secret: runnerToken, port: 0 }));
  const facilitator = await startPeer(rig, environment.facilitatorUrl);
  const chain = await startPeer(rig, environment.chain.url);
  const runner = await startPeer(rig, new URL(echo.url).origin);
  const upstream = await startPeer(rig, environment.modelUrl);
  const rates = await startPeer(rig, () => ({ rate: '3200.00' }));
  const payTo = lowerCase(privateKeyToAddress(devnetKeys.payTo));
  const listed = { isListed: true };
  const others = { resource: 'https://other.example/api', accepts: [] };
  const ours = { resource: 'https://chaos.example/x402/jobs/1/0', accepts: [{ payTo }] };
  const items = () => (listed.isListed ? [others, ours] : [others]);
  // the page after the first is empty: the end of the list
  const list = (url: string) => ({ items: url.includes('offset=0') ? items() : [] });
  const discovery = Object.assign(listed, { peer: await startPeer(rig, list) });

  const told: ToldAlert[] = [];
  const receiver = await startPeer(
    rig,
    () => ({}),
    async ({ body }, reply) => {
      told.push(JSON.parse(String(body)) as ToldAlert);
      return reply();
    },
  );
  const anchorFolder = path.join(environment.dir, 'anchors');
  mkdirSync(anchorFolder);
  const keyFile = path.join(environment.dir, 'anchor.key');
  writeFileSync(keyFile, anchorKey, { mode: 0o600 });
  const metricsPorts = [await freePort(), await freePort()];
  const gateways: DrillGateway[] = [];
  for (const [index, metricsPort] of metricsPorts.entries()) {
    const wire = await startWire(rig, environment.postgres.socketPath);
    const name = String(index + 1);
    const clockFile = path.join(environment.dir, `gateway-${name}.clock`);
    const slot = await startGatewaySlot(rig, {
      name,
      dir: environment.dir,
      config: {
        facilitatorUrl: facilitator.url,
        rpcUrl: chain.url,
        pushUrl: runner.url,
        network: environment,
        payTo,
        log: { folder: anchorFolder, everyMs: 1_000 },
        chat: {
          upstreamUrl: upstream.url,
          recipient: lowerCase(privateKeyToAddress(devnetKeys.spare)),
        },
        tables: moreTables({
          metricsPort,
          keyFile,
          checkpoints,
          rateUrl: rates.url,
          discoveryUrl: discovery.peer.url,
          alertsUrl: receiver.url,
        }),
      },
      clockFile,
      constants: {
        ...chaosConstants,
        delivery: { ...chaosConstants.delivery, maxAttempts },
        chainTrigger: { behindAfterSecs: 20 },
        discovery: { graceSecs: 0 },
      },
      databaseUrl: `postgresql://postgres@127.0.0.1:${wire.port}/${database}`,
    });
    rig.log(`gateway-${name}.log`, slot.log);
    gateways.push({ slot, wire, clockFile });
  }
  await Promise.all(gateways.map(({ slot }) => slot.untilUp()));

  const urls = gateways.map(({ slot }) => slot.url);
  const poller = createPoller(urls[0] ?? '');
  rig.defer(() => poller.stop());
  poller.start();
  const targets = metricsPorts.map((port) => `127.0.0.1:${port}`);
  const prometheus = await startPrometheus(rig, { targets, rules });
  const customers = startCustomers(urls, environment.payers, freeModel);
  rig.defer(() => customers.stop());
  return {
    environment,
    databaseUrl: () => environment.postgres.url(database),
    gateways,
    facilitator,
    chain,
    runner,
    upstream,
    rates,
    discovery,
    prometheus,
    told,
    customers,
    anchorFolder,
    startPoller: poller.start,
    stopPoller: poller.stop,
  };
}

interface MoreTables {
  readonly metricsPort: number;
  readonly keyFile: string;
  readonly checkpoints: string;
  readonly rateUrl: string;
  readonly discoveryUrl: string;
  readonly alertsUrl: string;
}

function moreTables(of: MoreTables): string {
  const { metricsPort, keyFile, checkpoints, rateUrl, discoveryUrl, alertsUrl } = of;
  // the sources belong to the last token
  return `
[[accepted_tokens.rates]]
kind = "http"
url = "${rateUrl}/rate"
pointer = "/rate"
max_age_secs = 5

[[models]]
name = "${freeModel}"
upstreams = [{ name = "model", model = "devnet-small" }]
free_tier = true
context_length = 32_768
max_output_tokens = 4_096

[[triggers]]
name = "${followingTrigger}"
kind = "chain"
service_id = 2
job_index = 0
network = "eip155:84532"
addresses = ["${checkpoints}"]
event = "event NeverEmitted()"

[alerts]
webhook = "${alertsUrl}"

[discovery]
url = "${discoveryUrl}"

[metrics]
bind_address = "127.0.0.1:${metricsPort}"

[[log.anchors]]
name = "contract"
kind = "chain"
network = "eip155:84532"
contract = "${checkpoints}"
secret = "file:${keyFile}"
`;
}

function createPoller(gatewayUrl: string) {
  let runner: Runner | undefined;
  return {
    start() {
      const poller = createRunner({ jobs: [job({ serviceId: 2, jobIndex: 0, on: { x402: () => 'done' } })] });
      runner = poller;
      // it stops when it is told to, also while no gateway answers
      void poller
        .poll({ gatewayUrl, token: runnerToken, services: [2], leaseSecs: 5, waitSecs: 1 })
        .catch(() => undefined);
    },
    stop: async () => runner?.stop({ graceMs: 1_000 }),
  };
}
