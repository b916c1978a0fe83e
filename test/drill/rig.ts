import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { privateKeyToAddress } from 'viem/accounts';
import { devnetKeys, lowerCase } from '../../src/devnet/accounts.ts';
import { deployCheckpointAnchor } from '../../src/devnet/checkpoint-anchor.ts';
import { freePort } from '../../src/devnet/ports.ts';
import { startEchoRunner } from '../../src/devnet/runner.ts';
import { createRunner, job, type Runner } from '../../src/runner/index.ts';
import { type Environment, startEnvironment } from '../chaos/environment.ts';
import { repositoryRoot } from '../support/planted-copy.ts';
import { gatewayConfig, usualConfig } from '../chaos/gateway-config.ts';
import {
  chaosConstants,
  createGatewaySlot,
  gatewaySecrets,
  type GatewaySlot,
  runnerToken,
} from '../chaos/gateway-process.ts';
import { createRandom } from '../chaos/random.ts';
import { childEnvironment } from '../support/child-environment.ts';
import { type Customers, startCustomers } from './customers.ts';
import { type Peer, startPeer, startWire, type Wire } from './peers.ts';
import { type Prometheus, startPrometheus } from './prometheus.ts';

/** A gateway process, its own way to the database, and the file that says how wrong its clock is. */
export interface DrillGateway {
  readonly slot: GatewaySlot;
  readonly wire: Wire;
  readonly configFile: string;
  readonly clockFile: string;
}

/** All that the drill runs: gateways, their peers, customers, and a Prometheus that scrapes the gateways. */
export interface Rig {
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
  readonly customers: Customers;
  /** A folder that takes checkpoints. */
  readonly anchorFolder: string;
  /** The runner that fetches the calls of service 2. */
  startPoller(): void;
  stopPoller(): Promise<void>;
  /** Runs the command line as the operator does. */
  tollbook(...args: readonly string[]): Promise<{ readonly code: number | null; readonly output: string }>;
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

/** @param closing gets what ends each part, as soon as it has started */
export async function startRig(rules: string, closing: (() => Promise<unknown>)[]): Promise<Rig> {
  const environment = await startEnvironment(createRandom('alert drill'));
  closing.push(() => environment.close());
  await environment.createDatabase(database);
  const checkpoints = await deployCheckpointAnchor(environment.chain);
  const echo = await startEchoRunner({ secret: runnerToken, port: 0 });
  closing.push(() => echo.close());
  const open = async (target: string): Promise<Peer> => {
    const peer = await startPeer(target);
    closing.push(() => peer.close());
    return peer;
  };
  const facilitator = await open(environment.facilitatorUrl);
  const chain = await open(environment.chain.url);
  const runner = await open(new URL(echo.url).origin);
  const upstream = await open(environment.modelUrl);
  const rates = await open(await serve(closing, () => '{"rate": "3200.00"}'));
  const payTo = lowerCase(privateKeyToAddress(devnetKeys.payTo));
  const listed = { isListed: true };
  const others = { resource: 'https://other.example/api', accepts: [] };
  const ours = { resource: 'https://chaos.example/x402/jobs/1/0', accepts: [{ payTo }] };
  const items = () => (listed.isListed ? [others, ours] : [others]);
  // the page after the first is empty: the end of the list
  const list = (url: string) => JSON.stringify({ items: url.includes('offset=0') ? items() : [] });
  const discovery = Object.assign(listed, { peer: await open(await serve(closing, list)) });

  const anchorFolder = path.join(environment.dir, 'anchors');
  mkdirSync(anchorFolder);
  const keyFile = path.join(environment.dir, 'anchor.key');
  writeFileSync(keyFile, anchorKey, { mode: 0o600 });
  const metricsPorts = [await freePort(), await freePort()];
  const gateways: DrillGateway[] = [];
  for (const [index, metricsPort] of metricsPorts.entries()) {
    const wire = await startWire(environment.postgres.socketPath);
    const port = await freePort();
    const name = String(index + 1);
    const configFile = path.join(environment.dir, `gateway-${name}.toml`);
    const clockFile = path.join(environment.dir, `gateway-${name}.clock`);
    const [token, secondToken] = environment.tokens;
    const urls = { facilitatorUrl: facilitator.url, rpcUrl: chain.url, pushUrl: runner.url };
    const config = gatewayConfig({
      port,
      ...urls,
      token,
      secondToken,
      registry: environment.registry,
      payTo,
      variant: usualConfig,
      maxAttempts,
      chat: {
        upstreamUrl: upstream.url,
        recipient: lowerCase(privateKeyToAddress(devnetKeys.spare)),
      },
    });
    const more = moreTables({
      metricsPort,
      anchorFolder,
      keyFile,
      checkpoints,
      rateUrl: rates.url,
      discoveryUrl: discovery.peer.url,
    });
    writeFileSync(configFile, config + more);
    const slot = createGatewaySlot({
      name,
      url: `http://127.0.0.1:${port}`,
      root: repositoryRoot,
      configFile,
      clockFile,
      constants: {
        ...chaosConstants,
        chainTrigger: { behindAfterSecs: 20 },
        discovery: { graceSecs: 0 },
      },
      databaseUrl: `postgresql://postgres@127.0.0.1:${wire.port}/${database}`,
      // no fault of the drill may end a gateway
      isExcused: () => false,
    });
    closing.push(() => wire.close());
    closing.push(() => slot.stop());
    gateways.push({ slot, wire, configFile, clockFile });
  }
  await Promise.all(gateways.map(({ slot }) => slot.untilUp()));

  const urls = gateways.map(({ slot }) => slot.url);
  const poller = createPoller(urls[0] ?? '');
  closing.push(() => poller.stop());
  poller.start();
  const targets = metricsPorts.map((port) => `127.0.0.1:${port}`);
  const prometheus = await startPrometheus(path.join(environment.dir, 'prometheus'), { targets, rules });
  closing.push(() => prometheus.stop());
  const customers = startCustomers(urls, environment.payers, freeModel);
  closing.push(() => customers.stop());
  const databaseUrl = (): string => environment.postgres.url(database);
  return {
    environment,
    databaseUrl,
    gateways,
    facilitator,
    chain,
    runner,
    upstream,
    rates,
    discovery,
    prometheus,
    customers,
    anchorFolder,
    startPoller: poller.start,
    stopPoller: poller.stop,
    tollbook: (...args) => runTollbook(databaseUrl(), args),
  };
}

interface MoreTables {
  readonly metricsPort: number;
  readonly anchorFolder: string;
  readonly keyFile: string;
  readonly checkpoints: string;
  readonly rateUrl: string;
  readonly discoveryUrl: string;
}

function moreTables(of: MoreTables): string {
  const { metricsPort, anchorFolder, keyFile, checkpoints, rateUrl, discoveryUrl } = of;
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

[discovery]
url = "${discoveryUrl}"

[metrics]
bind_address = "127.0.0.1:${metricsPort}"

[log]
origin = "drill.example/log"
key = "env:CHAOS_LOG_KEY"

[[log.anchors]]
name = "copies"
kind = "folder"
location = "${anchorFolder}"
every_ms = 1_000

[[log.anchors]]
name = "contract"
kind = "chain"
network = "eip155:84532"
contract = "${checkpoints}"
secret = "file:${keyFile}"
`;
}

async function serve(closing: (() => Promise<unknown>)[], answer: (url: string) => string): Promise<string> {
  const server = createServer(({ url = '' }, response) => void response.end(answer(url)));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  closing.push(async () => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
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

async function runTollbook(databaseUrl: string, args: readonly string[]) {
  const child = spawn(process.execPath, ['src/app/cli/tollbook.ts', ...args], {
    cwd: repositoryRoot,
    env: { ...childEnvironment(), DATABASE_URL: databaseUrl, ...gatewaySecrets },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, output: output.slice(-2_000) };
}
