import { createSecretKey } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import type { Config, RunnerConfig, X402Config } from './config/config.ts';
import type { Caip2 } from './domain/primitives.ts';
import type { FeatureParts, RunningFeature } from './feature.ts';
import { createBudget } from './gateway/budget.ts';
import { createCatalog } from './gateway/catalog.ts';
import type { Gateway } from './gateway/gateway.ts';
import { mergeSettings, reloadEvent } from './gateway/reload.ts';
import { createOffers, refreshOffers } from './gateway/offers.ts';
import { notReadyYet, presentReadiness } from './gateway/readiness.ts';
import { leaseRoutes } from './http/leases.ts';
import { operatorRoutes } from './http/operator.ts';
import { paidJobRoutes } from './http/paid-jobs.ts';
import { priceRoutes } from './http/prices.ts';
import { receiptRoutes } from './http/receipts.ts';
import { statusRoutes } from './http/status.ts';
import { type Chain, createChain } from './peers/chain.ts';
import { createContractSignatureChecker } from './peers/contract-signature.ts';
import { createFacilitator, type Facilitator } from './peers/facilitator.ts';
import { createPermissionChecker } from './peers/permission.ts';
import { pendingMigrations } from './store/migrations.ts';
import { createPaymentLookup } from './store/payment-lookup.ts';
import { readReceiptKey } from './store/secrets.ts';
import { createWebhook, type Webhook } from './peers/webhook.ts';
import { startAlerter } from './workers/alerter.ts';
import { startConfirmer } from './workers/confirmer.ts';
import { startFollower } from './workers/follower.ts';
import { startJanitor } from './workers/janitor.ts';
import type { Loop } from './workers/loop.ts';
import { startMonitor } from './workers/monitor.ts';
import { startRelay } from './workers/relay.ts';
import { startResolver } from './workers/resolver.ts';

interface Parts extends FeatureParts {
  readonly x402: X402Config;
}

type Releases = Pick<Gateway, 'onCallReleased' | 'callReleased'>;

/** Wakes whoever waits for a call: the relays, and the runners in their long polls. */
function createReleases(relays: readonly Loop[]): Releases {
  const released = new EventEmitter().setMaxListeners(0);
  return {
    onCallReleased: () => {
      for (const relay of relays) relay.wake();
      released.emit('call');
    },
    callReleased: async (over) => {
      await once(released, 'call', { signal: over });
    },
  };
}

/** All that the use cases work with, from one configuration. */
async function composeGateway(parts: Parts, releases: Releases): Promise<Gateway> {
  const { config, x402, ledger, publicUrl } = parts;
  const { parityCacheSecs: cacheSecs } = x402;
  return {
    ...ledger,
    ...releases,
    config,
    x402,
    catalog: createCatalog(x402),
    configuredAtMs: Date.now(),
    publicUrl,
    lookup: createPaymentLookup(ledger.pool),
    facilitator: openFacilitator(parts),
    offers: createOffers(parts.logger),
    chains: openChains(x402, new Map()),
    permissions: createPermissionChecker({ timeoutMs: 3_000, maxConcurrent: 64, cacheSecs }),
    contractSignatures: createContractSignatureChecker({ timeoutMs: 3_000, gasCap: 500_000 }),
    budget: createBudget(config.limits.requestsPerMinute),
    receiptKey: createSecretKey(await readReceiptKey(ledger.db)),
    settling: new Map(),
    flows: new Set(),
    stopping: parts.isStopping,
    log: parts.logger,
  };
}

/** The feature `x402`: paid jobs, from the request to the runner. */
export async function composeX402(parts: Parts): Promise<RunningFeature> {
  const { config, databaseUrl, otherChecks } = parts;
  const relays: Loop[] = [];
  let gateway = await composeGateway(parts, createReleases(relays));
  await checkOffers(gateway);
  let readiness = notReadyYet;
  const current = (): Gateway => gateway;
  const loops: Loop[] = [];
  const pending = (): Promise<readonly string[]> => pendingMigrations(databaseUrl);
  const monitor = (): Loop => startMonitor(current, pending, (next) => (readiness = next));

  return {
    async register(app) {
      await app.register(paidJobRoutes(current));
      await app.register(leaseRoutes(gateway));
      await app.register(priceRoutes(current));
      await app.register(receiptRoutes(current));
      await app.register(operatorRoutes(current));
      const ready = () => ({ ...presentReadiness(gateway, readiness), ...otherChecks?.() });
      await app.register(statusRoutes(gateway, ready));
    },
    startWorkers() {
      relays.push(...config.runners.filter(isPushed).map((runner) => startRelay(gateway, runner)));
      loops.push(monitor(), startJanitor(gateway), ...relays);
      loops.push(
        startFollower(gateway),
        startResolver(current),
        startConfirmer(current),
        startAlerter(gateway, openWebhook(config)),
      );
    },
    prepareReload(next) {
      if (!next.x402) throw new Error('the feature x402 cannot be switched off without a restart');
      const { settings, wantsRestart } = mergeSettings(gateway.x402, next.x402);
      const renewed = {
        ...gateway,
        config: { ...gateway.config, x402: settings },
        x402: settings,
        catalog: createCatalog(settings),
        configuredAtMs: Date.now(),
        chains: openChains(settings, gateway.chains),
      };
      return {
        events: [reloadEvent(renewed.catalog)],
        wantsRestart,
        putInForce() {
          const replaced = [...gateway.chains].filter(
            ([network, chain]) => renewed.chains.get(network) !== chain,
          );
          gateway = renewed;
          for (const [, chain] of replaced) void chain.close();
        },
      };
    },
    // what it has to tell stands in its own readiness
    checks: () => ({}),
    async finish() {
      while (gateway.flows.size > 0) await Promise.all(gateway.flows);
      await Promise.all(loops.map((loop) => loop.stop()));
    },
    // money that moves is never cut short: whoever comes next finishes it
    cutShort: () => {},
    async stop() {
      const { facilitator, permissions, contractSignatures, chains } = gateway;
      const peers = [facilitator, permissions, contractSignatures, ...chains.values()];
      await Promise.all(peers.map((peer) => peer.close()));
    },
  };
}

function openFacilitator({ x402, facilitatorAuth, logger }: Parts): Facilitator {
  return createFacilitator({
    ...x402.facilitator,
    ...(facilitatorAuth && { authorize: facilitatorAuth }),
    onCircuit: (change) => {
      if (change.state === 'closed') logger.info('the facilitator answers again: payments are taken');
      else
        logger.warn(
          { cause: change.cause },
          'the facilitator gives no useful answers: no payments are taken',
        );
    },
  });
}

/** What is offered first is what the facilitator settles, unless it cannot say so now: that stops no start. */
async function checkOffers(gateway: Gateway): Promise<void> {
  const answer = await refreshOffers(gateway);
  if (answer.kind === 'kinds') return;
  const { cause } = answer;
  gateway.log.warn(
    { cause },
    'the facilitator does not say what it settles: all tokens are offered until it does',
  );
}

function openWebhook({ alerts }: Config): Webhook | undefined {
  return alerts.webhook && createWebhook({ ...alerts.webhook, timeoutMs: 10_000 });
}

function isPushed(runner: RunnerConfig): runner is RunnerConfig & { readonly url: string } {
  return runner.mode === 'push' && runner.url !== undefined;
}

/** The chains of a configuration: those already open where the RPC is the same, new ones else. */
function openChains(x402: X402Config, open: ReadonlyMap<Caip2, Chain>): ReadonlyMap<Caip2, Chain> {
  const networks = [...x402.networks].map(([network, { rpcUrl }]): [Caip2, Chain] => {
    const known = open.get(network);
    if (known?.rpcUrl === rpcUrl) return [network, known];
    return [
      network,
      createChain({ chainId: Number(network.slice('eip155:'.length)), rpcUrl, timeoutMs: 5_000 }),
    ];
  });
  // a quote of before may still be paid on a network that is gone from the configuration
  return new Map([...open, ...networks]);
}
