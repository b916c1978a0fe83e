import path from 'node:path';
import { freePort } from '../../src/devnet/ports.ts';
import type { ConfigVariant } from './gateway-config.ts';
import { type GatewaySlot, startGatewaySlot } from './gateway-process.ts';
import type { HttpProxy } from '../support/http-proxy.ts';
import type { FaultInjector } from './fault-injector.ts';
import { startSpendRpcProxy, startUpstreamProxy } from './chat-peers.ts';
import {
  startFacilitatorProxy,
  startLeaseProxy,
  startPushProxy,
  startRpcProxy,
  type StrikeHere,
} from './peers.ts';
import { type PostgresProxy, startPostgresProxy } from './postgres-proxy.ts';
import { startRouteUpstream, startRouteUpstreamProxy } from './route-upstream.ts';
import type { RunParts } from './run-parts.ts';
import { type RunnerSlot, startRunnerSlot } from './runner-slot.ts';
import { injectWireFaults } from './wire-faults.ts';

/** The processes and proxies of one run, without the clients. */
export interface Participants {
  readonly gateways: readonly GatewaySlot[];
  readonly runners: readonly RunnerSlot[];
  /** The number of gateway requests and messages in flight in all proxies. */
  readonly pending: () => number;
  /** Gateways have no connection to the database until it is opened again. */
  blockDatabase(): void;
  openDatabase(): void;
}

export async function startParticipants(parts: RunParts): Promise<Participants> {
  const { scope, faults, schedule } = parts;
  const proxies: (HttpProxy | PostgresProxy)[] = [];
  const wires: PostgresProxy[] = [];
  const pushPort = await freePort();
  const { holdMs } = schedule;
  const pusher = startRunnerSlot(scope, { mode: 'push', where: String(pushPort), holdMs });
  const api = schedule.hasRoutes ? await startRouteUpstream(scope) : undefined;
  const gateways = await Promise.all(
    schedule.configs.map((variant, index) =>
      startGatewayWithProxies(parts, variant, index, { pushPort, api }, pusher, { proxies, wires }),
    ),
  );
  let turn = 0;
  const anyGateway = (): string => gateways[turn++ % gateways.length]?.url ?? '';
  const strikePoller = (step: 'leased'): void => strikeRunner(parts, poller, step);
  const { url: where } = scope.keep(await startLeaseProxy(anyGateway, faults, strikePoller));
  const poller: RunnerSlot = startRunnerSlot(scope, { mode: 'lease', where, holdMs });
  return {
    gateways,
    runners: [pusher, poller],
    pending: () => proxies.reduce((sum, proxy) => sum + proxy.pending(), 0),
    blockDatabase() {
      for (const wire of wires) wire.block();
    },
    openDatabase() {
      for (const wire of wires) wire.open();
    },
  };
}

/** One gateway with proxies of its own, so that each exchange belongs to a known gateway. */
async function startGatewayWithProxies(
  parts: RunParts,
  variant: ConfigVariant,
  index: number,
  { pushPort, api }: { readonly pushPort: number; readonly api: string | undefined },
  pusher: RunnerSlot,
  { proxies, wires }: { proxies: (HttpProxy | PostgresProxy)[]; wires: PostgresProxy[] },
): Promise<GatewaySlot> {
  const { scope, environment, faults, freezer, ambushes, records, database, payTo, recipient } = parts;
  const { dir, root } = environment;
  const { hasCredit, turnover } = parts.schedule;
  const strike = (step: Parameters<StrikeHere>[0]) => strikeGateway(faults, slot, step);
  const peer = { faults, strike };
  const kept = <T extends HttpProxy | PostgresProxy>(proxy: T): T => {
    proxies.push(proxy);
    return scope.keep(proxy);
  };
  const facilitator = kept(await startFacilitatorProxy(environment.facilitatorUrl, peer, parts));
  const chain = kept(await startRpcProxy(environment.chain.url, peer));
  // what is about spends meets its own faults first
  const rpc = hasCredit ? kept(await startSpendRpcProxy(chain.url, peer)) : chain;
  const push = kept(
    await startPushProxy(`http://127.0.0.1:${pushPort}`, peer, (step) => strikeRunner(parts, pusher, step)),
  );
  const wire = kept(
    await startPostgresProxy(environment.postgres.socketPath, (message) =>
      injectWireFaults({ ...peer, slot, freezer, ambushes, records })(message),
    ),
  );
  wires.push(wire);
  const upstream = hasCredit
    ? kept(await startUpstreamProxy(environment.modelUrl, peer, records))
    : undefined;
  const routed = api === undefined ? undefined : kept(await startRouteUpstreamProxy(api, peer, records));
  const slot: GatewaySlot = await startGatewaySlot(scope, {
    name: String(index + 1),
    dir,
    root,
    config: {
      facilitatorUrl: facilitator.url,
      rpcUrl: rpc.url,
      pushUrl: push.url,
      network: environment,
      payTo,
      variant,
      log: turnover?.hasLog ? { folder: path.join(dir, `${database}-log`), everyMs: 20 } : undefined,
      chat: upstream && { upstreamUrl: upstream.url, recipient },
    },
    routeUpstreamUrl: routed?.url,
    clockFile: parts.clocks.fileOf(index),
    databaseUrl: `postgresql://postgres@127.0.0.1:${wire.port}/${database}`,
    // the gateway may end when the database is down or a fault cuts its connection
    isExcused: () => environment.postgres.isAway() || !faults.over.aborted,
  });
  return slot;
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

function strikeRunner({ faults }: RunParts, runner: RunnerSlot, step: 'pushed' | 'leased'): void {
  const strike = faults.takeStrike(step);
  if (strike?.what !== 'kill_runner') return;
  faults.count(`kill_runner ${step}`);
  setTimeout(() => void runner.kill(), strike.ms);
}
