import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { freePort } from '../../src/devnet/ports.ts';
import type { Address } from '../../src/base/values/primitives.ts';
import type { ChainGate } from './chain-gate.ts';
import type { Ambushes } from './ambushes.ts';
import type { Clocks } from './clocks.ts';
import type { Records } from './records.ts';
import type { Freezer } from './freezer.ts';
import type { FrontRunner } from './front-runner.ts';
import { type ConfigVariant, gatewayConfig } from './gateway-config.ts';
import { createGatewaySlot, type GatewaySlot, runnerToken } from './gateway-process.ts';
import type { HttpProxy } from './http-proxy.ts';
import type { Schedule } from './schedule.ts';
import type { FaultInjector } from './fault-injector.ts';
import { startSpendRpcProxy, startUpstreamProxy } from './chat-peers.ts';
import {
  type PeerParts,
  startFacilitatorProxy,
  startLeaseProxy,
  startPushProxy,
  startRpcProxy,
  type StrikeHere,
} from './peers.ts';
import { type PostgresProxy, startPostgresProxy } from './postgres-proxy.ts';
import { createRunnerSlot, type RunnerSlot } from './runner-slot.ts';
import { injectWireFaults } from './wire-faults.ts';
import type { Environment } from './environment.ts';

/** The processes and proxies of one run, without the clients. */
export interface Participants {
  readonly gateways: readonly GatewaySlot[];
  readonly runners: readonly RunnerSlot[];
  /** The number of gateway requests and messages in flight in all proxies. */
  readonly pending: () => number;
  readonly configFiles: readonly string[];
  /** Gateways have no connection to the database until it is opened again. */
  blockDatabase(): void;
  openDatabase(): void;
  stop(): Promise<void>;
}

export interface ParticipantsOptions {
  readonly environment: Environment;
  readonly faults: FaultInjector;
  readonly freezer: Freezer;
  readonly records: Records;
  readonly frontRunner: FrontRunner;
  readonly gate: ChainGate;
  readonly ambushes: Ambushes;
  readonly database: string;
  readonly payTo: Address;
  /** Where payouts of spends go. */
  readonly recipient: Address;
  readonly schedule: Pick<Schedule, 'configs' | 'turnover' | 'hasCredit' | 'holdMs'>;
  readonly clocks: Pick<Clocks, 'fileOf'>;
}

export async function startParticipants(parts: ParticipantsOptions): Promise<Participants> {
  const { faults, schedule } = parts;
  const proxies: HttpProxy[] = [];
  const wires: PostgresProxy[] = [];
  const pushPort = await freePort();
  const pusher = createRunnerSlot(['push', String(pushPort), runnerToken, String(schedule.holdMs)]);
  const gateways = await Promise.all(
    schedule.configs.map((variant, index) =>
      startGatewayWithProxies(parts, variant, index, pushPort, pusher, { proxies, wires }),
    ),
  );
  let turn = 0;
  const anyGateway = (): string => gateways[turn++ % gateways.length]?.url ?? '';
  const leaseProxy = await startLeaseProxy(anyGateway, faults, (step) => strikeRunner(parts, poller, step));
  const poller: RunnerSlot = createRunnerSlot([
    'lease',
    leaseProxy.url,
    runnerToken,
    String(schedule.holdMs),
  ]);
  return {
    gateways,
    runners: [pusher, poller],
    pending: () => [...proxies, ...wires].reduce((sum, proxy) => sum + proxy.pending(), 0),
    configFiles: gateways.map((_, index) => configFileOf(parts, index)),
    blockDatabase() {
      for (const wire of wires) wire.block();
    },
    openDatabase() {
      for (const wire of wires) wire.open();
    },
    async stop() {
      await Promise.all([...gateways, pusher, poller].map((slot) => slot.stop()));
      await Promise.all([...proxies, ...wires, leaseProxy].map((proxy) => proxy.close()));
    },
  };
}

function configFileOf({ environment, database }: ParticipantsOptions, index: number): string {
  return path.join(environment.dir, `${database}-${index + 1}.toml`);
}

/** One gateway with proxies of its own, so that each exchange belongs to a known gateway. */
async function startGatewayWithProxies(
  parts: ParticipantsOptions,
  variant: ConfigVariant,
  index: number,
  pushPort: number,
  pusher: RunnerSlot,
  { proxies, wires }: { proxies: HttpProxy[]; wires: PostgresProxy[] },
): Promise<GatewaySlot> {
  const { environment, faults, freezer, ambushes, records, database, payTo } = parts;
  const name = String(index + 1);
  const strike = (step: Parameters<StrikeHere>[0]) => strikeGateway(faults, slot, step);
  const peer = { faults, strike };
  const facilitator = await startFacilitatorProxy(environment.facilitatorUrl, peer, parts);
  const chain = await startRpcProxy(environment.chain.url, peer);
  // what is about spends meets its own faults first
  const rpc = parts.schedule.hasCredit ? await startSpendRpcProxy(chain.url, peer) : chain;
  const push = await startPushProxy(`http://127.0.0.1:${pushPort}`, peer, (step) =>
    strikeRunner(parts, pusher, step),
  );
  const wire = await startPostgresProxy(environment.postgres.socketPath, (message) =>
    injectWireFaults({ ...peer, slot, freezer, ambushes, records })(message),
  );
  const chat = parts.schedule.hasCredit ? await startChatProxies(parts, peer) : undefined;
  proxies.push(facilitator, ...new Set([chain, rpc]), push, ...(chat?.proxies ?? []));
  wires.push(wire);
  const port = await freePort();
  const configFile = configFileOf(parts, index);
  const [token, secondToken] = environment.tokens;
  const { registry } = environment;
  const logFolder = parts.schedule.turnover?.hasLog
    ? path.join(environment.dir, `${database}-log`)
    : undefined;
  const urls = { facilitatorUrl: facilitator.url, rpcUrl: rpc.url, pushUrl: push.url };
  writeFileSync(
    configFile,
    gatewayConfig({
      port,
      ...urls,
      token,
      secondToken,
      registry,
      payTo,
      variant,
      logFolder,
      chat: chat?.values,
    }),
  );
  const slot: GatewaySlot = createGatewaySlot({
    name,
    url: `http://127.0.0.1:${port}`,
    root: environment.root,
    configFile,
    clockFile: parts.clocks.fileOf(index),
    databaseUrl: `postgresql://postgres@127.0.0.1:${wire.port}/${database}`,
    // the gateway may end when the database is down or a fault cuts its connection
    isExcused: () => environment.postgres.isAway() || !faults.over.aborted,
  });
  return slot;
}

async function startChatProxies({ environment, records, recipient }: ParticipantsOptions, peer: PeerParts) {
  const upstream = await startUpstreamProxy(environment.modelUrl, peer, records);
  return { proxies: [upstream], values: { upstreamUrl: upstream.url, recipient } };
}

async function strikeGateway(
  faults: FaultInjector,
  slot: GatewaySlot,
  step: Parameters<StrikeHere>[0],
): Promise<boolean> {
  const strike = faults.takeStrike(step);
  if (strike?.what === 'freeze_gateway') {
    faults.count(`freeze_gateway ${step}`, `gateway ${slot.name}, ${strike.ms} ms`);
    slot.freeze(strike.ms);
  }
  if (strike?.what !== 'kill_gateway' || !slot.kill()) return false;
  faults.count(`kill ${step}`, `gateway ${slot.name}`);
  return true;
}

function strikeRunner({ faults }: ParticipantsOptions, runner: RunnerSlot, step: 'pushed' | 'leased'): void {
  const strike = faults.takeStrike(step);
  if (strike?.what !== 'kill_runner') return;
  faults.count(`kill_runner ${step}`);
  setTimeout(() => runner.kill(), strike.ms);
}
