import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Config, RoutingConfig, UpstreamConfig } from './config/config.ts';
import type { FeatureParts, RunningFeature } from './feature.ts';
import { operatorCreditRoutes } from './http/operator-credit.ts';
import { routingRoutes } from './http/routing-api.ts';
import { createCredits } from './peers/credits.ts';
import { createUpstream, type Upstream } from './peers/upstream.ts';
import { createUpstreamHealth } from './peers/upstream-health.ts';
import { createCache } from './routing/cache.ts';
import { createHoldStarts } from './routing/hold-starts.ts';
import { createOperatorFunds } from './routing/operator-funds.ts';
import { routingCheck } from './routing/readiness.ts';
import { reloadEvent } from './routing/reload.ts';
import { rememberRefusals } from './routing/remember-refusals.ts';
import type { Routing } from './routing/routing.ts';
import type { Identity } from './routing/identity.ts';
import type { RunningIdentity } from './identity.ts';
import type { Spending } from './routing/spend.ts';
import { createSpendQueue } from './routing/spend-queue.ts';
import { sweep } from './store/calls.ts';
import { beat, sweepRouting } from './store/credit.ts';
import { sweepExposures } from './store/spend.ts';
import { presence, startChatRecoverer } from './workers/chat-recoverer.ts';
import { startFundsWatcher } from './workers/funds-watcher.ts';
import { startJanitor } from './workers/janitor.ts';
import { type Loop, startLoop } from './workers/loop.ts';
import { startSpendClaimer } from './workers/spend-claimer.ts';

interface Parts extends FeatureParts {
  readonly routing: RoutingConfig;
}

/** Far beyond what a model writes: a bound on what one answer may take of the memory. */
const maxAnswerBytes = 32 * 1_048_576;
const maxCachedKeys = 10_000;
const refreshMs = 5_000;
const chainTimeoutMs = 5_000;
/** Of one account, in one process. */
const maxWaitingSpends = 32;

/** The feature `routing`: model chat, from the request to its settled cost. */
export async function composeChat(parts: Parts): Promise<RunningFeature> {
  const { ledger } = parts;
  const people = await composePeople(parts);
  let routing = composeRouting(parts, people?.identity);
  const current = (): Routing => routing;
  const cutShort = new AbortController();
  const loops: Loop[] = [];
  /** Upstreams that no configuration names any more, until their last answer is over. */
  const closing = new Set<Promise<void>>();
  // before the first hold: nobody may take it for one of a process that is gone
  await beat(ledger.pool, routing.processId, presence.silentSecs);

  return {
    async register(app) {
      await app.register(routingRoutes(current, cutShort.signal));
      // what it grants must be heard of where refusals are remembered
      await app.register(operatorCreditRoutes(routing));
      await people?.register(app, current);
    },
    startWorkers() {
      people?.startWorkers();
      loops.push(startChatRecoverer(routing), startLaneWatch(routing));
      const { spending } = routing;
      if (spending) loops.push(startSpendClaimer(routing, spending), startFundsWatcher(routing, spending));
      // what the lane leaves behind somebody has to sweep
      const sweeps = [sweepRouting, sweepExposures];
      loops.push(startJanitor(routing, parts.config.x402 ? sweeps : [...sweeps, sweep]));
    },
    prepareReload(next) {
      if (!next.routing) throw new Error('the feature routing cannot be switched off without a restart');
      // balances are numbers of the currency they were paid in, a key's transactions are sent by one sender, and runners,
      // whose calls a top-up's must not be, stay as they are
      const { currency, spendAuth, topUps } = routing.settings;
      const settings = { ...next.routing, currency, spendAuth, topUps };
      const changed = {
        currency: next.routing.currency !== currency,
        'routing.spend_auth': !isDeepStrictEqual(next.routing.spendAuth, spendAuth),
        'routing.top_ups': !isDeepStrictEqual(next.routing.topUps, topUps),
      };
      return {
        events: [reloadEvent(settings)],
        wantsRestart: Object.entries(changed).flatMap(([key, isChanged]) => (isChanged ? [key] : [])),
        putInForce() {
          const upstreams = openUpstreams(settings, routing);
          const replaced = [...routing.upstreams].filter(([name, old]) => upstreams.get(name) !== old);
          // who began with one of these may not have asked it yet
          const underWay = [...routing.running];
          routing = renew(routing, settings, upstreams);
          for (const [, upstream] of replaced) closeBehind(upstream, underWay, closing);
        },
      };
    },
    checks: () => ({ routing: routingCheck(routing) }),
    async finish() {
      while (routing.running.size > 0) await Promise.all(routing.running);
      await people?.finish();
      await Promise.all(loops.map((loop) => loop.stop()));
    },
    cutShort: () => cutShort.abort(),
    async stop() {
      const open = [...routing.upstreams.values()].map((upstream) => upstream.close());
      await Promise.all([...open, ...closing, people?.stop(), routing.spending?.credits.close()]);
    },
  };
}

/** Where people have no accounts, nothing of theirs is even imported. */
async function composePeople(parts: Parts): Promise<RunningIdentity | undefined> {
  const { identity } = parts.config;
  if (!identity) return undefined;
  const module = await import('./identity.ts');
  return module.composeIdentity(parts, identity);
}

function composeRouting(
  { config, routing: settings, ledger, logger, isStopping }: Parts,
  identity: Identity | undefined,
): Routing {
  const lane = rememberRefusals(ledger.lane, () => performance.now());
  return {
    ...ledger,
    lane,
    recallFull: lane.recallFull,
    config,
    settings,
    models: modelsOf(settings),
    upstreams: openUpstreams(settings),
    health: createUpstreamHealth({
      failuresToOpen: 5,
      firstPauseMs: 1_000,
      maxPauseMs: 30_000,
      nowMs: () => performance.now(),
      random: Math.random,
    }),
    processId: randomUUID(),
    holdStarts: createHoldStarts(ledger.pool),
    keys: createCache(maxCachedKeys),
    identity,
    spending: openSpending(settings),
    running: new Set(),
    stopping: isStopping,
    log: logger,
  };
}

function openSpending({ spendAuth }: RoutingConfig): Spending | undefined {
  if (!spendAuth) return undefined;
  const { chainId, rpcUrl, contract, operatorKey: privateKey } = spendAuth;
  const credits = createCredits({ chainId, rpcUrl, contract, privateKey, timeoutMs: chainTimeoutMs });
  const queue = createSpendQueue(maxWaitingSpends);
  return { settings: spendAuth, credits, queue, funds: createOperatorFunds(credits) };
}

function renew(routing: Routing, settings: RoutingConfig, upstreams: ReadonlyMap<string, Upstream>): Routing {
  const config: Config = { ...routing.config, routing: settings };
  return { ...routing, config, settings, models: modelsOf(settings), upstreams };
}

function modelsOf({ models }: RoutingConfig): Routing['models'] {
  return new Map(models.map((model) => [model.name, model]));
}

/** The upstreams of a configuration: those already open where nothing about them has changed, new ones else. */
function openUpstreams(
  { upstreams }: RoutingConfig,
  open?: Pick<Routing, 'settings' | 'upstreams'>,
): ReadonlyMap<string, Upstream> {
  const known = new Map(open?.settings.upstreams.map((config) => [config.name, config]));
  return new Map(
    upstreams.map((config): [string, Upstream] => {
      const { name } = config;
      const kept = isSameServer(known.get(name), config) ? open?.upstreams.get(name) : undefined;
      return [name, kept ?? createUpstream({ ...config, maxAnswerBytes })];
    }),
  );
}

/** A weight is looked at where one is chosen. */
function isSameServer(one: UpstreamConfig | undefined, other: UpstreamConfig): boolean {
  return isDeepStrictEqual({ ...one, weight: 0 }, { ...other, weight: 0 });
}

function closeBehind(
  upstream: Upstream,
  underWay: readonly Promise<unknown>[],
  closing: Set<Promise<void>>,
): void {
  const closed = Promise.all(underWay)
    .then(() => upstream.close())
    .finally(() => closing.delete(closed));
  closing.add(closed);
}

/** Keeps what is known of the lane, and the reading of the database's clock, up to date while nothing is appended. */
function startLaneWatch({ lane, log }: Routing): Loop {
  return startLoop(
    async () => void lane.refresh(),
    refreshMs,
    (error) => log.error({ err: error }, 'the ledger could not be looked at'),
  );
}
