import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { freePort } from '../../src/devnet/ports.ts';
import type { Address } from '../../src/domain/values/primitives.ts';
import type { Book } from './book.ts';
import type { Freezer } from './freezer.ts';
import type { FrontRunner } from './front-runner.ts';
import { gatewayConfig } from './gateway-config.ts';
import { createGatewaySlot, type GatewaySlot, runnerToken } from './gateway-process.ts';
import type { HttpProxy } from './http-proxy.ts';
import type { Misfortune } from './misfortune.ts';
import {
  startFacilitatorProxy,
  startLeaseProxy,
  startPushProxy,
  startRpcProxy,
  type StrikeHere,
} from './peers.ts';
import { type PostgresProxy, startPostgresProxy } from './postgres-proxy.ts';
import { createRunnerSlot, type RunnerSlot } from './runner-slot.ts';
import { misbehaveOnWire } from './wire-faults.ts';
import type { World } from './world.ts';

/** Everybody who takes part in a run, apart from the clients. */
export interface Cast {
  readonly gateways: readonly GatewaySlot[];
  readonly runners: readonly RunnerSlot[];
  /** Requests and messages of gateways that are under way in any proxy. */
  readonly pending: () => number;
  stop(): Promise<void>;
}

export interface CastParts {
  readonly world: World;
  readonly misfortune: Misfortune;
  readonly freezer: Freezer;
  readonly book: Book;
  readonly frontRunner: FrontRunner;
  readonly database: string;
  readonly payTo: Address;
  readonly processes: number;
}

export async function startCast(parts: CastParts): Promise<Cast> {
  const { misfortune, processes } = parts;
  const proxies: (HttpProxy | PostgresProxy)[] = [];
  const pushPort = await freePort();
  const pusher = createRunnerSlot(['push', String(pushPort), runnerToken]);
  const gateways = await Promise.all(
    Array.from({ length: processes }, (_, index) => startPlace(parts, index, pushPort, pusher, proxies)),
  );
  let turn = 0;
  const anyGateway = (): string => gateways[turn++ % gateways.length]?.url ?? '';
  const leaseProxy = await startLeaseProxy(anyGateway, misfortune, (step) =>
    strikeRunner(parts, poller, step),
  );
  const poller: RunnerSlot = createRunnerSlot(['lease', leaseProxy.url, runnerToken]);
  return {
    gateways,
    runners: [pusher, poller],
    pending: () => proxies.reduce((sum, proxy) => sum + proxy.pending(), 0),
    async stop() {
      await Promise.all([...gateways, pusher, poller].map((slot) => slot.stop()));
      await Promise.all([...proxies, leaseProxy].map((proxy) => proxy.close()));
    },
  };
}

/** One gateway with its own proxies, so that whoever sees an exchange knows whose it is. */
async function startPlace(
  parts: CastParts,
  index: number,
  pushPort: number,
  pusher: RunnerSlot,
  proxies: (HttpProxy | PostgresProxy)[],
): Promise<GatewaySlot> {
  const { world, misfortune, freezer, book, frontRunner, database, payTo } = parts;
  const name = String(index + 1);
  const strike = (step: Parameters<StrikeHere>[0]) => strikeGateway(misfortune, slot, step);
  const peer = { misfortune, strike };
  const facilitator = await startFacilitatorProxy(world.facilitatorUrl, peer, book, frontRunner);
  const rpc = await startRpcProxy(world.chain.url, peer);
  const push = await startPushProxy(`http://127.0.0.1:${pushPort}`, peer, (step) =>
    strikeRunner(parts, pusher, step),
  );
  const wire = await startPostgresProxy(world.postgres.socketPath, (message) =>
    misbehaveOnWire({ ...peer, slot, freezer })(message),
  );
  proxies.push(facilitator, rpc, push, wire);
  const port = await freePort();
  const configFile = path.join(world.dir, `${database}-${name}.toml`);
  const [token, secondToken] = world.tokens;
  const { registry } = world;
  const urls = { facilitatorUrl: facilitator.url, rpcUrl: rpc.url, pushUrl: push.url };
  writeFileSync(configFile, gatewayConfig({ port, ...urls, token, secondToken, registry, payTo }));
  const slot: GatewaySlot = createGatewaySlot({
    name,
    url: `http://127.0.0.1:${port}`,
    root: world.root,
    configFile,
    databaseUrl: `postgresql://postgres@127.0.0.1:${wire.port}/${database}`,
    // a database that is away, or a connection that a fault cut
    isExcused: () => world.postgres.isAway() || !misfortune.over.aborted,
  });
  return slot;
}

async function strikeGateway(
  misfortune: Misfortune,
  slot: GatewaySlot,
  step: Parameters<StrikeHere>[0],
): Promise<boolean> {
  const strike = misfortune.strike(step);
  if (strike?.what === 'freeze_gateway') {
    misfortune.note(`freeze_gateway ${step}`, `gateway ${slot.name}, ${strike.ms} ms`);
    slot.freeze(strike.ms);
  }
  if (strike?.what !== 'kill_gateway' || !slot.kill()) return false;
  misfortune.note(`kill ${step}`, `gateway ${slot.name}`);
  return true;
}

function strikeRunner({ misfortune }: CastParts, runner: RunnerSlot, step: 'pushed' | 'leased'): void {
  const strike = misfortune.strike(step);
  if (strike?.what !== 'kill_runner') return;
  misfortune.note(`kill_runner ${step}`);
  setTimeout(() => runner.kill(), strike.ms);
}
