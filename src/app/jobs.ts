import type { FacilitatorConfig, JobsConfig, RunnerConfig } from '../base/config/config.ts';
import type { Caip2 } from '../base/values/primitives.ts';
import { hexToBytes } from 'viem/utils';
import { offerKeysOf } from '../payments/rules/offer-key.ts';
import { quoteKeysOf } from '../payments/rules/quote-echo.ts';
import { mapSecrets } from '../base/values/rotating-secret.ts';
import type { Figure, Metrics } from '../ledger/metrics/metrics.ts';
import { type RunningBroker, startBroker } from './broker.ts';
import type { FeatureParts, RunningFeature } from './feature.ts';
import { jobsFigures } from './metric-values.ts';
import { type JobRates, openJobRates } from './job-rates.ts';
import { observedChain, observedFacilitator, timedCallbacks, timedRunner } from './observed-peers.ts';
import { tracedLookup } from './traced-ledger.ts';
import { createResultStore } from '../calls/peers/results/create-result-store.ts';
import { sendCallback } from '../calls/use-cases/callbacks.ts';
import type { JobsContext } from '../jobs/use-cases/context.ts';
import { registerJobRoutes } from './job-routes.ts';
import { createEventAllowance } from '../ledger/store/event-allowance.ts';
import { issueQuote, type QuoteIssuer } from '../jobs/use-cases/issue-quote.ts';
import { arePeersKnown, jobConditions } from '../jobs/use-cases/conditions.ts';
import { listingStatus } from '../jobs/use-cases/listings.ts';
import { rateStatus } from '../jobs/use-cases/rates.ts';
import { reloadEvent } from '../jobs/use-cases/reload.ts';
import { createRequestTally } from '../ledger/store/request-tally.ts';
import { createLostPayments } from '../payments/use-cases/lost-payments.ts';
import { createOffers, refreshOffers } from '../jobs/use-cases/offers.ts';
import {
  createRunnerSilence,
  createUndecidedCounts,
  createUnpaidStreams,
} from '../jobs/use-cases/capacity.ts';
import { createQuoteRate } from '../jobs/use-cases/quote-rate.ts';
import { createSeenQuotes } from '../jobs/use-cases/pay-job.ts';
import { createStreamWatch, type StreamWatch } from '../calls/use-cases/stream-watch.ts';
import { chatUpstream } from '../base/config/urls.ts';
import { createRunnerUpstreams } from '../jobs/use-cases/routes/runner-upstream.ts';
import type { ChatSale } from './chat-sale.ts';
import { createRequestPrices } from '../jobs/peers/request-prices.ts';
import { createUpstreams } from '../jobs/peers/upstream.ts';
import { receiptKeysOf } from '../payments/use-cases/receipt-keys.ts';
import { type JobsStatus, notCheckedYet, presentJobs, type ReadJobs } from '../jobs/use-cases/jobs-status.ts';
import { healthRoutes } from '../jobs/http/status.ts';
import { type Chain, createChain } from '../payments/peers/chain/chain.ts';
import { createContractSignatureChecker } from '../base/peers/rpc/contract-signature.ts';
import { createFacilitator } from '../payments/peers/facilitator/facilitator.ts';
import {
  createFacilitators,
  type Facilitators,
  type NamedFacilitator,
} from '../payments/peers/facilitator/facilitators.ts';
import { createPermissionChecker } from '../base/peers/rpc/permission.ts';
import { createPushRunner } from '../calls/peers/runner/push-runner.ts';
import { createPaymentLookup } from '../payments/store/payment-lookup.ts';
import { readLogGeneration } from '../audit/store/log.ts';
import { readLedgerId, readReceiptKey } from '../ledger/store/secrets.ts';
import { type Lane, overlayLane } from '../ledger/store/lane.ts';
import { offerPrices } from '../payments/store/price-windows.ts';
import { startCallbackSender } from '../calls/workers/callback-sender.ts';
import { startConfirmer } from '../payments/workers/confirmer.ts';
import { startDueTimes } from '../jobs/workers/cleaner.ts';
import {
  startDeadLetterDiscarder,
  startOldCallEnder,
  startResultSweeper,
} from '../calls/workers/call-ends.ts';
import { startListingFollower, startListingWatcher } from '../jobs/workers/listing-watcher.ts';
import type { Loop } from '../ledger/workers/loop.ts';
import { startPriceExtender, startRateAsker, startRateFollower } from '../jobs/workers/price-rates.ts';
import { startJobsStatusChecker } from '../jobs/workers/jobs-status-checker.ts';
import { startRefundFollower } from '../finance/workers/refund-follower.ts';
import { startRequestCounter } from '../jobs/workers/request-counter.ts';
import { startRelay } from '../calls/workers/relay.ts';
import { startResolver } from '../payments/workers/resolver.ts';
import { createLastKnown, type LastKnown } from '../base/runtime/last-known.ts';
import { createSince } from '../base/runtime/since.ts';
import { logSecondSecret } from '../base/runtime/second-secret.ts';
import { createFailureRuns } from '../calls/use-cases/failure-runs.ts';
import { createPromiseTracker } from '../base/runtime/promise-tracker.ts';
import { createSharedPolling } from '../base/runtime/shared-polling.ts';
import type { LeasedCall } from '../calls/store/calls.ts';

interface Parts extends FeatureParts {
  readonly settings: JobsConfig;
  readonly chatSale: ChatSale;
}

type Releases = Pick<JobsContext, 'onCallReleased' | 'leaseLooks'>;

/** How often runners that wait look for calls that other processes released; those of this process are found immediately. */
const leasePollMs = 1_000;

/** Wakes the relays, and a runner in its long poll, when a call is released. */
function createReleases(relays: readonly Loop[], isStopping: () => boolean): Releases {
  const leaseLooks = createSharedPolling<LeasedCall>(leasePollMs, isStopping);
  return {
    leaseLooks,
    onCallReleased: () => {
      for (const relay of relays) relay.wake();
      leaseLooks.lookAgain();
    },
  };
}

function figuresOf(
  current: () => JobsContext,
  status: () => JobsStatus,
  read: LastKnown<ReadJobs>,
): readonly Figure[] {
  return jobsFigures({
    status,
    read,
    isCircuitOpen: () => current().facilitators.isCircuitOpen(),
    rates: () => rateStatus(current().rates),
    listings: () => listingStatus(current()),
  });
}

interface RunningJobs extends RunningFeature {
  readonly current: () => JobsContext;
}

/** The lane, which wakes waiting requests immediately when this process has appended to their stream. */
function notedLane(lane: Lane, { noteGrown }: StreamWatch): Lane {
  return overlayLane(lane, {
    async append(command, options) {
      const appended = await lane.append(command, options);
      noteGrown(command.stream);
      return appended;
    },
  });
}

interface ContextParts {
  readonly releases: Releases;
  /** Known once it was made. */
  readonly jobs: () => JobsContext;
  readonly storedKey: Buffer;
  readonly rates: JobRates;
  readonly brokerState: JobsContext['brokerState'];
}

/** The context of the use cases, from one configuration. */
async function createContext(
  parts: Parts,
  { releases, jobs, storedKey, rates, brokerState }: ContextParts,
): Promise<JobsContext> {
  const { config, settings, ledger, publicUrl } = parts;
  const { quotesPerSecond, quoteEventsPerSec } = config.limits;
  const asking = { pool: ledger.pool, log: parts.logger };
  const { catalog, priceList } = rates.pricesOf(config, settings);
  const sold = createRunnerUpstreams(settings, jobs);
  const streams = createStreamWatch(ledger, parts.isStopping);
  return {
    ...ledger,
    lane: notedLane(ledger.lane, streams),
    streams,
    results: config.resultStore && createResultStore(config.resultStore),
    ...releases,
    upstreams: createUpstreams({ ...sold, [chatUpstream]: parts.chatSale.upstream }),
    requestPrices: createRequestPrices({ [chatUpstream]: (body) => parts.chatSale.price(body) }),
    asking: new Map(),
    unpaidStreams: createUnpaidStreams(),
    config,
    settings,
    catalog,
    priceList,
    rates: rates.rates,
    publicUrl,
    lookup: tracedLookup(createPaymentLookup(ledger.pool), parts.tracing),
    facilitators: openFacilitators(parts, () => jobs().settings),
    offers: createOffers(parts.logger, parts.wrongTokens, rates.rates.missing),
    listings: createLastKnown(),
    chains: openChains(settings, new Map(), parts),
    permissions: createPermissionChecker({ timeoutMs: 3_000, maxConcurrent: 64 }),
    contractSignatures: createContractSignatureChecker({ timeoutMs: 3_000, gasCap: 500_000 }),
    lostPayments: createLostPayments(ledger.pool),
    budget: parts.budget,
    runnerSilence: createRunnerSilence(),
    failureRuns: createFailureRuns(),
    undecided: createUndecidedCounts(ledger.db),
    brokerState,
    quoteRate: createQuoteRate(quotesPerSecond),
    quoteEvents: await createEventAllowance(asking, 'quote', quoteEventsPerSec),
    pricingQuotes: await createEventAllowance(asking, 'pricing_quote', quoteEventsPerSec),
    rejectionEvents: await createEventAllowance(asking, 'rejected_payment', quoteEventsPerSec),
    requestTally: createRequestTally(),
    ...keysOf(settings, storedKey),
    quoteRealm: {
      ledgerId: await readLedgerId(ledger.db),
      // gateways are stopped while a recovery begins another one
      generation: (await readLogGeneration(ledger.pool)).generation,
      lane: 1,
      origin: config.publicUrl,
    },
    seenQuotes: createSeenQuotes(),
    unpaidQuotes: createPromiseTracker(),
    settling: new Map(),
    flows: createPromiseTracker(),
    stopping: parts.isStopping,
    tooLate: parts.isTooLate,
    tracing: parts.tracing,
    log: parts.logger,
  };
}

/** The feature `jobs`: paid jobs, from the request to the runner. */
export async function composeJobs(parts: Parts): Promise<RunningJobs> {
  const { readiness } = parts;
  const relays: Loop[] = [];
  const storedKey = await readReceiptKey(parts.ledger.db);
  const rates = await openJobRates(parts.ledger, parts.settings);
  let broker: RunningBroker | undefined;
  let context: JobsContext = await createContext(parts, {
    jobs: () => context,
    storedKey,
    rates,
    releases: createReleases(relays, parts.isStopping),
    brokerState: () => broker?.state(),
  });
  await checkOffers(context);
  tellPayees(context);
  let checked = notCheckedYet;
  const since = createSince();
  const current = (): JobsContext => context;
  const loops: Loop[] = [];
  const status = () => presentJobs(context, checked, since);
  const read = createLastKnown<ReadJobs>();
  const monitor = (): Loop =>
    startJobsStatusChecker(current, (next) => {
      checked = next;
      if (next.queue) read.learn({ queue: next.queue, runners: next.runners });
    });

  return {
    current,
    async registerHealth(app) {
      await app.register(healthRoutes(readiness));
    },
    async register(app) {
      // before the first answer
      await offerPrices(context.pool, context.priceList);
      const swap = (prices: Partial<JobsContext>): void => void (context = { ...context, ...prices });
      loops.push(
        startPriceExtender(current),
        startRateFollower(current, () => rates.follow(current, swap)),
      );
      await registerJobRoutes(app, { current, reads: parts.reads, bodies: parts.bodies, readiness });
    },
    quotes: quoteIssuer(current),
    figures: () => figuresOf(current, status, read),
    conditions: () => jobConditions(context, status()),
    knowsConditions: () => checked !== notCheckedYet && arePeersKnown(status()),
    startOwnLoops() {
      loops.push(monitor(), startRequestCounter(context), ...startListingFollower(current));
    },
    startWorkers() {
      broker = startBroker(context, current);
      relays.push(...startRelays(context, current, parts.metrics, broker));
      loops.push(startDueTimes(context), ...relays, ...startListingWatcher(current));
      loops.push(startOldCallEnder(current), startDeadLetterDiscarder(current), startRefundFollower(current));
      if (context.results) loops.push(startResultSweeper({ ...context, results: context.results }));
      loops.push(...startCallbackSender(current, timedCallbacks(sendCallback, parts.metrics)));
      loops.push(startResolver(current), startConfirmer(current), startRateAsker(current));
    },
    prepareReload(next) {
      const settings = next.jobs ?? context.settings;
      const { putInForce: putRatesInForce, ...prices } = rates.pricesOf(next, settings);
      const renewed = {
        ...context,
        config: next,
        settings,
        ...prices,
        ...keysOf(settings, storedKey),
        chains: openChains(settings, context.chains, parts),
      };
      return {
        record: () => offerPrices(renewed.pool, renewed.priceList),
        events: [reloadEvent(renewed.catalog, context.catalog)],
        putInForce() {
          putRatesInForce();
          closeReplaced(context, renewed);
          context = renewed;
        },
      };
    },
    status: () => ({ jobs: status() }),
    underWay: () => context.flows.size,
    async finish() {
      await context.flows.drained();
      await context.unpaidQuotes.drained();
      await Promise.all(loops.map((loop) => loop.stop()));
      await broker?.close();
    },
    // no `cutShort`: a settlement under way is never interrupted, and another process finishes it after a restart
    stop: () => closePeers(context),
  };
}

async function closePeers({
  facilitators,
  permissions,
  contractSignatures,
  results,
  chains,
  upstreams,
  requestPrices,
}: JobsContext): Promise<void> {
  const peers = [
    facilitators,
    permissions,
    contractSignatures,
    upstreams,
    requestPrices,
    ...(results ? [results] : []),
    ...chains.values(),
  ];
  await Promise.all(peers.map((peer) => peer.close()));
}

/** @param storedKey the database's own, if the configuration names no receipt key */
function keysOf(
  { receiptKeys, quoteKeys, offerReceipt }: JobsConfig,
  storedKey: Buffer,
): Pick<JobsContext, 'receiptKeys' | 'quoteKeys' | 'offerKeys'> {
  const { format, keys } = offerReceipt ?? {};
  return {
    receiptKeys: receiptKeysOf(receiptKeys, storedKey),
    quoteKeys: quoteKeys && quoteKeysOf(quoteKeys),
    offerKeys:
      format &&
      keys &&
      offerKeysOf(
        format,
        mapSecrets(keys, (key) => hexToBytes(key)),
      ),
  };
}

function quoteIssuer(current: () => JobsContext): QuoteIssuer {
  return { issue: (request) => current().flows.add(issueQuote(current(), request)) };
}

/** @param current the configuration in force: its tokens are used */
function openFacilitators(
  { settings, facilitatorAuth, logger, metrics, tracing }: Parts,
  current: () => JobsConfig,
): Facilitators {
  const isAlone = settings.facilitators.length === 1;
  const open = ({ name, label, url, walletFactories }: FacilitatorConfig): NamedFacilitator => {
    const client = createFacilitator({
      url,
      verifyTimeoutMs: settings.facilitatorVerifyTimeoutMs,
      settleTimeoutMs: settings.facilitatorSettleTimeoutMs,
      connections: settings.facilitatorConnections,
      bearers: () => current().facilitators.find((one) => one.name === name)?.tokens,
      onSecondBearer: () => logSecondSecret(logger, `the token of ${label}`),
      ...(facilitatorAuth && { authorize: facilitatorAuth }),
      onCircuit: (change) => {
        const fact = { facilitator: label };
        if (change.state === 'closed')
          logger.info(fact, 'the facilitator answers again: payments are accepted');
        else
          logger.warn(
            { ...fact, cause: change.cause },
            'the facilitator gives no useful answers: it gets no payments',
          );
      },
    });
    const observers = { metrics, tracing };
    const observed = observedFacilitator(client, isAlone ? undefined : label, observers);
    return { name, label, client: observed, walletFactories };
  };
  return createFacilitators(settings.facilitators.map(open));
}

/** A payee belongs to one ledger: the log of each start names them, since nothing else can notice that two have the same. */
function tellPayees({ settings, log }: JobsContext): void {
  const payees = [...new Set(settings.acceptedTokens.map(({ network, payTo }) => `${network}/${payTo}`))];
  log.info(
    { payees, exclusive: settings.payToExclusive },
    settings.payToExclusive
      ? 'every transfer to these payees counts as meant for this ledger: no other ledger may have them'
      : 'these payees may be those of another ledger as well: transfers that name no offer are left to the operator',
  );
}

/** Asks the facilitators which tokens they settle. One that does not answer does not stop the start. */
async function checkOffers(context: JobsContext): Promise<void> {
  const answer = await refreshOffers(context);
  if (answer.kind === 'kinds') return;
  const { cause } = answer;
  context.log.warn(
    { cause },
    'no facilitator answers which tokens it settles: all are offered until one does',
  );
}

type Chains = Pick<JobsContext, 'chains'>;

/** Each finishes its running calls. */
function closeReplaced({ chains: before }: Chains, { chains: after }: Chains): void {
  for (const [network, chain] of before) if (after.get(network) !== chain) void chain.close();
}

/** Opens a push runner whose deliveries are measured where metrics are wanted. */
function openRunner({ name }: RunnerConfig, metrics: Metrics | undefined): typeof createPushRunner {
  return (options) => timedRunner(createPushRunner(options), name, metrics);
}

/** One for each runner that calls are pushed to, or handed to by a broker. */
function startRelays(
  context: JobsContext,
  current: () => JobsContext,
  metrics: Metrics | undefined,
  broker: RunningBroker | undefined,
): Loop[] {
  const pushed = context.config.runners.filter(isPushed);
  const relays = pushed.map((runner) => startRelay(context, runner, current, openRunner(runner, metrics)));
  return [...relays, ...(broker?.relays ?? [])];
}

function isPushed(runner: RunnerConfig): runner is RunnerConfig & { readonly url: string } {
  return runner.mode === 'push' && runner.url !== undefined;
}

/** The chains of a configuration. A chain that is open already is reused if its RPC is the same. */
function openChains(
  settings: JobsConfig,
  open: ReadonlyMap<Caip2, Chain>,
  observers: Pick<Parts, 'metrics' | 'tracing'>,
): ReadonlyMap<Caip2, Chain> {
  const networks = [...settings.networks].map(([network, { rpcUrl }]): [Caip2, Chain] => {
    const known = open.get(network);
    if (known?.rpcUrl === rpcUrl) return [network, known];
    const chainId = Number(network.slice('eip155:'.length));
    const chain = createChain({ chainId, rpcUrl, timeoutMs: 5_000 });
    return [network, observedChain(chain, network, observers)];
  });
  // an older quote may still be paid on a network that is no longer in the configuration
  return new Map([...open, ...networks]);
}
