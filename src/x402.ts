import { EventEmitter, once } from 'node:events';
import type { FastifyInstance } from 'fastify';
import type pg from 'pg';
import type { Logger } from 'pino';
import type { Config, RunnerConfig, X402Config } from './config/config.ts';
import { createBudget } from './gateway/budget.ts';
import { createCatalog } from './gateway/catalog.ts';
import type { Gateway } from './gateway/gateway.ts';
import { notReadyYet } from './gateway/readiness.ts';
import { leaseRoutes } from './http/leases.ts';
import { paidJobRoutes } from './http/paid-jobs.ts';
import { priceRoutes } from './http/prices.ts';
import { receiptRoutes } from './http/receipts.ts';
import { statusRoutes } from './http/status.ts';
import { createChain } from './peers/chain.ts';
import { createFacilitator } from './peers/facilitator.ts';
import type { LedgerDatabase } from './store/database.ts';
import type { Lane } from './store/lane.ts';
import { pendingMigrations } from './store/migrations.ts';
import { readReceiptKey } from './store/secrets.ts';
import { startJanitor } from './workers/janitor.ts';
import type { Loop } from './workers/loop.ts';
import { startMonitor } from './workers/monitor.ts';
import { startRelay } from './workers/relay.ts';

interface Parts {
  readonly config: Config;
  readonly x402: X402Config;
  readonly databaseUrl: string;
  readonly ledger: { readonly pool: pg.Pool; readonly db: LedgerDatabase; readonly lane: Lane };
  readonly logger: Logger;
  readonly isStopping: () => boolean;
  readonly publicUrl: () => string;
}

/** The feature `x402`: paid jobs, from the request to the runner. */
export async function composeX402({
  config,
  x402,
  databaseUrl,
  ledger,
  logger,
  isStopping,
  publicUrl,
}: Parts) {
  const facilitator = createFacilitator(x402.facilitator);
  const chains = new Map(
    [...x402.networks].map(([network, { rpcUrl }]) => {
      const chainId = Number(network.slice('eip155:'.length));
      return [network, createChain({ chainId, rpcUrl, timeoutMs: 5_000 })] as const;
    }),
  );
  const relays: Loop[] = [];
  const released = new EventEmitter().setMaxListeners(0);
  const gateway: Gateway = {
    ...ledger,
    config,
    x402,
    catalog: createCatalog(x402),
    configuredAtMs: Date.now(),
    publicUrl,
    facilitator,
    chains,
    budget: createBudget(config.limits.requestsPerMinute),
    receiptKey: await readReceiptKey(ledger.db),
    settling: new Map(),
    flows: new Set(),
    onCallReleased: () => {
      for (const relay of relays) relay.wake();
      released.emit('call');
    },
    callReleased: async (over) => {
      await once(released, 'call', { signal: over });
    },
    stopping: isStopping,
    log: logger,
  };
  let readiness = notReadyYet;
  const loops: Loop[] = [];
  const pending = (): Promise<readonly string[]> => pendingMigrations(databaseUrl);
  const monitor = (): Loop => startMonitor(gateway, pending, (next) => (readiness = next));

  return {
    async register(app: FastifyInstance): Promise<void> {
      await app.register(paidJobRoutes(gateway));
      await app.register(leaseRoutes(gateway));
      await app.register(priceRoutes(gateway));
      await app.register(receiptRoutes(gateway));
      await app.register(statusRoutes(gateway, () => readiness));
    },
    startWorkers(): void {
      relays.push(...config.runners.filter(isPushed).map((runner) => startRelay(gateway, runner)));
      loops.push(monitor(), startJanitor(gateway), ...relays);
    },
    /** Finishes the flows that were taken, also those whose clients have gone, then what the workers have in hand. */
    async finish(): Promise<void> {
      while (gateway.flows.size > 0) await Promise.all(gateway.flows);
      await Promise.all(loops.map((loop) => loop.stop()));
    },
    /** Drops the connections to peers. */
    async stop(): Promise<void> {
      await Promise.all([facilitator, ...chains.values()].map((peer) => peer.close()));
    },
  };
}

function isPushed(runner: RunnerConfig): runner is RunnerConfig & { readonly url: string } {
  return runner.mode === 'push' && runner.url !== undefined;
}
