import { randomUUID } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { isDeepStrictEqual } from 'node:util';
import type { Config, ChatConfig, RouteConfig, UpstreamConfig } from '../base/config/config.ts';
import { presence } from '../base/values/presence.ts';
import type { Metrics } from '../ledger/metrics/metrics.ts';
import { chatFigures } from './metric-values.ts';
import type { FeatureParts, RunningFeature } from './feature.ts';
import { timedUpstream } from './observed-peers.ts';
import { operatorCreditRoutes } from '../chat/http/operator-credit.ts';
import { readyRoutes } from '../ledger/http/ready.ts';
import { type Completions, createCompletions } from '../chat/http/make-completion.ts';
import { chatRoutes } from '../chat/http/routes.ts';
import { createPrepaidContract } from '../chat/peers/prepaid/prepaid-contract.ts';
import { createUpstream, type Upstream } from '../chat/peers/upstream/upstream.ts';
import { createRequestTally } from '../ledger/store/request-tally.ts';
import { createUpstreamHealth } from '../chat/peers/upstream/health.ts';
import { createBoundedCache } from '../base/values/bounded-cache.ts';
import { createPlaces } from '../base/runtime/places.ts';
import { createKeyUses } from '../chat/use-cases/key-uses.ts';
import { createAskedHolds } from '../chat/use-cases/asked-holds.ts';
import { createTypicalLengths, learnLengths } from '../chat/use-cases/typical-lengths.ts';
import { createHoldMarker } from '../chat/use-cases/hold-marker.ts';
import { spendConditions, createOperatorBalance } from '../chat/use-cases/spend/operator-balance.ts';
import { createPayoutAlert, createUsageAlert } from '../chat/use-cases/operator-alerts.ts';
import { chatStatus } from '../chat/use-cases/chat-status.ts';
import { reloadEvent } from '../chat/use-cases/reload.ts';
import { cacheRefusals } from '../chat/use-cases/refusal-cache.ts';
import type { ChatContext, SpendContext } from '../chat/use-cases/context.ts';
import type { Identity } from '../accounts/use-cases/context.ts';
import { chatUpstream } from '../base/config/urls.ts';
import { offerOf, paidBesides } from '../jobs/http/routes.ts';
import type { JobsContext } from '../jobs/use-cases/context.ts';
import { makeSoldChat, priceSoldChat } from '../chat/use-cases/sold-chat.ts';
import type { ChatSale } from './chat-sale.ts';
import { createSpendQueue } from '../chat/use-cases/spend/spend-queue.ts';
import { type Backlog, readHolds } from '../ledger/store/backlogs.ts';
import { sendHeartbeat } from '../ledger/store/processes.ts';
import { startChatRecoverer, startHeartbeats } from '../chat/workers/chat-recoverer.ts';
import { startOperatorBalanceChecker, startSpendPayouts } from '../chat/workers/spend-payouts.ts';
import { startRequestCounter } from '../jobs/workers/request-counter.ts';
import { startDueTimes } from '../jobs/workers/cleaner.ts';
import { type Loop, startLoop } from '../ledger/workers/loop.ts';
import { createLastKnown, type LastKnown } from '../base/runtime/last-known.ts';
import { createSince } from '../base/runtime/since.ts';
import { createPromiseTracker } from '../base/runtime/promise-tracker.ts';

interface Parts extends FeatureParts {
  readonly settings: ChatConfig;
  readonly chatSale: ChatSale;
  /** Undefined where no jobs are sold. */
  readonly jobs: (() => JobsContext) | undefined;
}

/** Bounds the memory that one answer may use; far above the length of real answers. */
const maxAnswerBytes = 32 * 1_048_576;
const maxCachedKeys = 10_000;
const refreshMs = 5_000;
const writeUsesMs = 1_000;
const chainTimeoutMs = 5_000;
/** Of one account, in one process. */
const maxWaitingSpends = 32;

/** The feature `chat`: model chat, from the request to its settled cost. */
export async function composeChat(
  parts: Parts,
  identity: Identity | undefined,
): Promise<RunningFeature & { readonly current: () => ChatContext; readonly completions: Completions }> {
  const { ledger } = parts;
  let context = createContext(parts, identity);
  const current = (): ChatContext => context;
  const since = createSince();
  const holds = createLastKnown<Backlog>();
  const cutShort = new AbortController();
  const completions = createCompletions(current, cutShort.signal);
  parts.chatSale.connect({
    price: (body) => priceSoldChat(context, body, soldRoute(parts.config)?.modelPrices),
    make: (order) => makeSoldChat(context, order, cutShort.signal),
  });
  const loops: Loop[] = [];
  /** Upstreams that are no longer configured, until their last answer has ended. */
  const closing = createPromiseTracker();
  // before the first hold: otherwise another process would take it for one of a process that has ended
  await sendHeartbeat(ledger.pool, context.processId, presence.silentSecs);

  return {
    current,
    completions,
    async registerHealth(app) {
      await app.register(readyRoutes(parts.readiness), { prefix: '/v1' });
    },
    async register(app) {
      const { jobs } = parts;
      const sold = soldRoute(parts.config);
      if (jobs && sold) await app.register(paidBesides({ current: jobs, bodies: parts.bodies }, sold));
      const offer =
        jobs && sold && ((request: FastifyRequest, body: Buffer) => offerOf(jobs(), sold, request, body));
      await app.register(chatRoutes(current, { ...parts, completions, offer }, cutShort.signal));
      await app.register(operatorCreditRoutes(context));
    },
    conditions: async () => (context.spending ? spendConditions(context.spending) : []),
    startOwnLoops() {
      loops.push(startHeartbeats(context), startChatWatch(context, holds), startRequestCounter(context));
      // without the recorded answers it learns from those to come
      void context.running.add(learnLengths(context, context.typicalLengths).catch(() => {}));
      const { keyUses, log } = context;
      const failureMessage = 'the last uses of API keys could not be recorded';
      const onStopped = (): Promise<void> => keyUses.write();
      loops.push(startLoop(() => keyUses.write(), { pollMs: writeUsesMs, log, failureMessage, onStopped }));
      if (context.spending) loops.push(startOperatorBalanceChecker(context.spending));
    },
    startWorkers() {
      loops.push(startChatRecoverer(context));
      if (context.spending) loops.push(startSpendPayouts(context.spending));
      // without paid jobs, chat does their common work
      if (!parts.config.jobs) loops.push(startDueTimes(context));
    },
    prepareReload(next) {
      const settings = next.chat ?? context.settings;
      return {
        events: [reloadEvent(settings)],
        putInForce() {
          const upstreams = openUpstreams(settings, parts.metrics, context);
          const replaced = [...context.upstreams].filter(([name, old]) => upstreams.get(name) !== old);
          // requests under way may not have used one of these yet
          const underWay = context.running.settled();
          context = { ...context, config: next, settings, models: modelsOf(settings), upstreams };
          for (const [, upstream] of replaced) void closing.add(underWay.then(() => upstream.close()));
        },
      };
    },
    underWay: () => context.running.size,
    status: () => ({ chat: chatStatus(context, since) }),
    figures: () =>
      chatFigures({
        status: () => chatStatus(context, since),
        holds,
        funds: () => context.spending?.operatorBalance.funds(),
      }),
    async finish() {
      await context.running.drained();
      await Promise.all(loops.map((loop) => loop.stop()));
    },
    cutShort: () => cutShort.abort(),
    async stop() {
      const open = [...context.upstreams.values()].map((upstream) => upstream.close());
      await Promise.all([...open, closing.drained(), context.spending?.prepaid.close()]);
    },
  };
}

function createContext(
  { config, settings, ledger, logger, budget, isTooLate, metrics, tracing }: Parts,
  identity: Identity | undefined,
): ChatContext {
  const lane = cacheRefusals(ledger.lane, () => performance.now());
  const shared = {
    ...ledger,
    lane,
    processId: randomUUID(),
    running: createPromiseTracker(),
    log: logger,
  };
  return {
    ...shared,
    findFullLimit: lane.findFullLimit,
    requestTally: createRequestTally(),
    config,
    settings,
    models: modelsOf(settings),
    upstreams: openUpstreams(settings, metrics),
    health: createUpstreamHealth({
      failuresToOpen: 5,
      firstPauseMs: 1_000,
      maxPauseMs: 30_000,
      nowMs: () => performance.now(),
      random: Math.random,
    }),
    holdMarker: createHoldMarker(ledger.pool),
    keyUses: createKeyUses(ledger.pool),
    budget,
    places: createPlaces(),
    typicalLengths: createTypicalLengths(),
    askedHolds: createAskedHolds(),
    usageAlert: createUsageAlert(lane),
    keys: createBoundedCache(maxCachedKeys),
    identity,
    spending: openSpending(config, shared),
    isSold: soldRoute(config) !== undefined,
    tooLate: isTooLate,
    tracing,
  };
}

/** By which completions are sold to callers without an account. */
function soldRoute({ jobs }: Config): RouteConfig | undefined {
  return [...(jobs?.routes?.all.values() ?? [])].find(({ upstream }) => upstream === chatUpstream);
}

function openSpending(
  { spend: settings }: Config,
  shared: Pick<SpendContext, 'pool' | 'lane' | 'processId' | 'running' | 'log'>,
): SpendContext | undefined {
  if (!settings) return undefined;
  const { chainId, rpcUrl, contract, operatorKey: privateKey, maxFeePerGasWei } = settings;
  const key = { privateKey, maxFeePerGasWei };
  const prepaid = createPrepaidContract({ chainId, rpcUrl, contract, ...key, timeoutMs: chainTimeoutMs });
  return {
    ...shared,
    settings,
    prepaid,
    queue: createSpendQueue(maxWaitingSpends),
    operatorBalance: createOperatorBalance(prepaid),
    payoutAlert: createPayoutAlert(shared.lane),
  };
}

function modelsOf({ models }: ChatConfig): ChatContext['models'] {
  return new Map(models.map((model) => [model.name, model]));
}

/** The upstreams of a configuration. An upstream that is open already is reused if nothing about it has changed. */
function openUpstreams(
  { upstreams }: ChatConfig,
  metrics: Metrics | undefined,
  open?: Pick<ChatContext, 'settings' | 'upstreams'>,
): ReadonlyMap<string, Upstream> {
  const known = new Map(open?.settings.upstreams.map((config) => [config.name, config]));
  return new Map(
    upstreams.map((config): [string, Upstream] => {
      const { name } = config;
      const kept = isSameServer(known.get(name), config) ? open?.upstreams.get(name) : undefined;
      return [name, kept ?? timedUpstream(createUpstream({ ...config, maxAnswerBytes }), metrics)];
    }),
  );
}

/** A weight is read where an upstream is chosen, so it needs no new connection. */
function isSameServer(one: UpstreamConfig | undefined, other: UpstreamConfig): boolean {
  return isDeepStrictEqual({ ...one, weight: 0 }, { ...other, weight: 0 });
}

/** Keeps the state of the lane, the offset to the database's clock and the held credit up to date while nothing is appended. */
function startChatWatch({ lane, pool, log }: ChatContext, holds: LastKnown<Backlog>): Loop {
  return startLoop(
    async () => {
      void lane.refresh();
      holds.learn(await readHolds(pool));
    },
    { pollMs: refreshMs, log, failureMessage: 'the state of the ledger could not be read' },
  );
}
