import type { Chain } from '../../payments/peers/chain/chain.ts';
import type { Since } from '../../base/runtime/since.ts';
import { countDeadLetters } from '../../ledger/store/alerts.ts';
import { readWaitingCalls, type WaitingCalls } from '../../calls/store/calls.ts';
import { noOldestCalls, type OldestCalls, readOldestCalls } from '../../calls/store/old-calls.ts';
import {
  type Backlog,
  readDeliveries,
  readDueCallbacks,
  readOpenSettlements,
  readStartedRefunds,
  type ServiceDeliveries,
} from '../../ledger/store/backlogs.ts';
import type { JobsContext } from './context.ts';
import { failingUpstreams, fullOutbox, untakenServices } from './delivery-trouble.ts';
import { refreshOffers, unsettledKinds } from './offers.ts';
import { listingStatus } from './listings.ts';
import { rateStatus } from './rates.ts';
import { describeBroker } from '../../calls/peers/broker/broker.ts';
import { isRunnerPaused } from '../../calls/use-cases/pause-runner.ts';
import type { Check } from '../../base/values/check.ts';

interface RunnerStatus {
  readonly name: string;
  readonly mode: 'push' | 'lease' | 'jetstream';
  readonly services: readonly number[];
  /** Undefined while the database cannot be read. */
  readonly is_paused?: boolean;
}

/** The calls that had not ended when they were read from the database. */
interface CallQueue {
  readonly waiting: readonly WaitingCalls[];
  readonly deliveries: readonly ServiceDeliveries[];
  readonly deadCalls: number;
  readonly oldest: OldestCalls;
  readonly openSettlements: Backlog;
  /** Those that were started, and are neither recorded nor given up. */
  readonly startedRefunds: Backlog;
  /** Undefined if clients are not called back. */
  readonly dueCallbacks?: Backlog;
}

/** What the background check found, without what is known at every moment. */
export type CheckedJobs = Awaited<ReturnType<typeof checkJobs>>;
/** What of it was read from the database. */
export type ReadJobs = Pick<CheckedJobs, 'runners'> & { readonly queue: CallQueue };

export const notCheckedYet: CheckedJobs = {
  facilitator: { ok: true },
  chains: {},
  queue: {
    waiting: [],
    deliveries: [],
    deadCalls: 0,
    oldest: noOldestCalls,
    openSettlements: { count: 0, oldestMs: 0 },
    startedRefunds: { count: 0, oldestMs: 0 },
  },
  runners: [],
};

/** Asks every peer and reads the outbox once. Never throws. */
export async function checkJobs(context: JobsContext) {
  const [queue, runners, facilitator, chains] = await Promise.all([
    readQueue(context),
    checkRunners(context),
    checkFacilitators(context),
    checkChains(context),
  ]);
  return { queue, runners, facilitator, chains };
}

async function readQueue({ config, settings, db, pool, log }: JobsContext): Promise<CallQueue | undefined> {
  try {
    // those of routes wait for their clients
    const routes = new Set([...(settings.routes?.all.values() ?? [])].map(({ serviceId }) => serviceId));
    const [waitingCalls, deliveries, dead, oldest, openSettlements, startedRefunds, dueCallbacks] =
      await Promise.all([
        readWaitingCalls(pool),
        readDeliveries(pool),
        countDeadLetters(db),
        readOldestCalls(pool),
        readOpenSettlements(pool),
        readStartedRefunds(pool),
        config.callbacks ? readDueCallbacks(pool) : undefined,
      ]);
    const waiting = waitingCalls.filter(({ serviceId }) => !routes.has(serviceId));
    const deadCalls = dead.reduce((sum, { calls }) => sum + calls, 0);
    const counts = { deadCalls, oldest, openSettlements, startedRefunds };
    return { waiting, deliveries, ...counts, ...(dueCallbacks && { dueCallbacks }) };
  } catch (err) {
    log.warn({ err }, 'the waiting calls could not be read');
    return undefined;
  }
}

export type JobsStatus = ReturnType<typeof presentJobs>;

/**
 * What of the paid jobs works, for the operator: the last check, with the present state of the ledger and of the circuit breaker. A payment is
 * refused by itself if its own way is broken.
 */
export function presentJobs(context: JobsContext, checked: CheckedJobs, since: Since) {
  const found = facilitatorOf(context, checked);
  const facilitator = { ...found, since: since.of('facilitator', found.ok) };
  const chains = Object.fromEntries(
    Object.entries(checked.chains).map(([name, chain]) => [
      name,
      { ...chain, since: since.of(name, chain.ok) },
    ]),
  );
  const rates = ratesOf(context, since);
  const discovery = discoveryOf(context, since);
  const broker = brokerOf(context, since);
  const { runners } = checked;
  const outbox = outboxOf(context, checked, since);
  const isPaused = runners.some((runner) => runner.is_paused);
  const ok =
    [facilitator, outbox, ...Object.values(chains), ...Object.values(rates)].every((part) => part.ok) &&
    discovery?.ok !== false &&
    broker?.ok !== false &&
    !isPaused;
  return {
    status: ok ? ('ok' as const) : ('degraded' as const),
    since: since.of('jobs', ok),
    facilitator,
    chains,
    rates,
    // left out if no discovery service is watched
    ...(discovery && { discovery }),
    outbox,
    // left out if this process hands no calls to a broker
    ...(broker && { broker }),
    runners,
  };
}

function brokerOf({ brokerState }: JobsContext, since: Since): Check | undefined {
  const state = brokerState();
  if (!state) return undefined;
  const ok = state.kind === 'ready';
  const detail = describeBroker(state);
  return { ok, ...(detail === undefined ? {} : { detail }), since: since.of('broker', ok) };
}

/** By `SYMBOL on NETWORK`. */
function ratesOf({ rates }: JobsContext, since: Since): Record<string, Check> {
  return Object.fromEntries(
    rateStatus(rates).map(({ name, state, detail }) => {
      const ok = state === 'current';
      return [name, { ok, ...(detail === undefined ? {} : { detail }), since: since.of(`rate ${name}`, ok) }];
    }),
  );
}

/** More are counted alone. */
const mostNamed = 20;

/** Our own listings in the discovery service; the jobs as `SERVICE/JOB`. */
function discoveryOf(context: JobsContext, since: Since) {
  const status = listingStatus(context);
  if (!status) return undefined;
  const services = [...status.services.values()];
  const gone = services.flatMap((service) => service.gone.map(({ job }) => job));
  const neverListed = services.flatMap((service) => service.neverListed);
  const details = [
    ...(status.hasLooked ? [] : ['no gateway has looked yet']),
    ...(status.unknown === undefined ? [] : [`its answers are not conclusive: ${status.unknown}`]),
    ...(gone.length > 0 ? [`${gone.length} jobs are not listed any more`] : []),
  ];
  const ok = status.unknown === undefined && gone.length === 0;
  return {
    ok,
    ...(details.length > 0 && { detail: details.join('; ') }),
    since: since.of('discovery', ok),
    service: status.host,
    listed_jobs: services.reduce((sum, { listed, missed }) => sum + listed.length + missed.length, 0),
    gone_jobs: gone.slice(0, mostNamed),
    never_listed_jobs: neverListed.slice(0, mostNamed),
  };
}

/** The last check, with the present state of the circuit breakers. */
function facilitatorOf({ facilitators }: JobsContext, { facilitator: checked }: CheckedJobs): Check {
  const states = facilitators.states();
  const open = states.filter(({ isCircuitOpen }) => isCircuitOpen);
  if (open.length === 0) return checked;
  const text =
    open.length === states.length
      ? 'circuit breaker open: no payments are started'
      : `circuit breaker of ${open.map(({ label }) => label).join(', ')} open: the others settle`;
  const details = [checked.detail, text];
  return { ok: false, detail: details.filter((part) => part !== undefined).join('; ') };
}

function outboxOf(context: JobsContext, { queue }: CheckedJobs, since: Since) {
  const { openCalls, unsettledCalls, triggeredCalls } = context.lane.state;
  const { undecidedMs, watchedMs, enqueuedMs, leasedMs } = queue?.oldest ?? noOldestCalls;
  const services = (queue?.waiting ?? []).map(({ serviceId, calls, oldestMs }) => ({
    service_id: serviceId,
    waiting_calls: calls,
    oldest_waiting_ms: oldestMs,
  }));
  const details = [
    ...fullOutbox(context),
    ...untakenServices(context, services).map(
      ({ serviceId, silentSecs }) =>
        `no runner has taken a call of service ${serviceId} for ${silentSecs} seconds`,
    ),
    ...context.failureRuns
      .long()
      .map(({ runner, failures }) => `the runner ${runner} has failed ${failures} times in a row`),
    ...failingUpstreams(context).map((host) => `the upstream ${host} cannot be reached`),
    ...(queue ? [] : ['unknown']),
  ];
  const ok = details.length === 0;
  return {
    ok,
    ...(ok ? {} : { detail: details.join('; ') }),
    since: since.of('outbox', ok),
    open_calls: openCalls,
    unsettled_calls: unsettledCalls,
    triggered_calls: triggeredCalls,
    dead_calls: queue?.deadCalls ?? 0,
    // how long the oldest payment has no known outcome, or may still land after it failed, and the oldest call no runner, or one
    ...(undecidedMs !== undefined && { oldest_undecided_ms: undecidedMs }),
    ...(watchedMs !== undefined && { oldest_watched_ms: watchedMs }),
    ...(enqueuedMs !== undefined && { oldest_enqueued_ms: enqueuedMs }),
    ...(leasedMs !== undefined && { oldest_leased_ms: leasedMs }),
    started_refunds: queue?.startedRefunds.count ?? 0,
    oldest_started_refund_ms: Math.round(queue?.startedRefunds.oldestMs ?? 0),
    services,
  };
}

async function checkRunners(context: JobsContext): Promise<readonly RunnerStatus[]> {
  return Promise.all(
    context.config.runners.map(async ({ name, mode, services }): Promise<RunnerStatus> => {
      const isPaused = await isRunnerPaused(context, { name }).catch(() => undefined);
      return { name, mode, services, ...(isPaused === undefined ? {} : { is_paused: isPaused }) };
    }),
  );
}

async function checkFacilitators(context: JobsContext): Promise<Check> {
  const answer = await refreshOffers(context);
  if (answer.kind === 'unavailable') return { ok: false, detail: `unavailable: ${answer.cause}` };
  const missing = unsettledKinds(context);
  const details = [
    ...context.facilitators
      .states()
      .flatMap(({ label, trouble }) => (trouble === undefined ? [] : [`${label} unavailable: ${trouble}`])),
    ...(missing.length === 0 ? [] : [`does not settle ${missing.join(', ')}`]),
  ];
  return details.length === 0 ? { ok: true } : { ok: false, detail: details.join('; ') };
}

async function checkChains(context: JobsContext): Promise<Record<string, Check>> {
  const networks = [...new Set(context.settings.acceptedTokens.map(({ network }) => network))];
  const checks = networks.map(
    async (network) => [network, await checkChain(context.chains.get(network))] as const,
  );
  return Object.fromEntries(await Promise.all(checks));
}

async function checkChain(chain: Chain | undefined): Promise<Check> {
  if (!chain) return { ok: true, detail: 'no RPC: settlements are not confirmed on this chain' };
  const answer = await chain.checkChainId();
  if (answer.kind === 'unavailable') return { ok: false, detail: `unavailable: ${answer.cause}` };
  return answer.matches ? { ok: true } : { ok: false, detail: 'the RPC serves another chain' };
}
