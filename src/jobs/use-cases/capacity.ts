import type { Config, JobsConfig } from '../../base/config/config.ts';
import { createBoundedCache } from '../../base/values/bounded-cache.ts';
import type { Address, Hex } from '../../base/values/primitives.ts';
import type { WaitingCalls } from '../../calls/store/calls.ts';
import type { LedgerDatabase } from '../../ledger/store/database.ts';
import { openPaidCalls, type Ledger } from '../../ledger/store/ledger.ts';
import { underWaySecs } from '../../payments/rules/payment-window.ts';
import { countPayable, countUndecided } from '../../payments/store/unsettled.ts';
import type { Upstreams } from '../peers/upstream.ts';
import type { Job } from './catalog.ts';
import type { OpenedRequest } from './job-request.ts';
import { type AuthorizedCaller, enqueueFailed, type ErrorRefusal, refusal } from './refusal.ts';

export interface CapacityPorts extends Pick<Ledger, 'db' | 'lane'> {
  readonly settings: JobsConfig;
  readonly config: Config;
  readonly runnerSilence: RunnerSilence;
  readonly undecided: UndecidedCounts;
  /** True in the second half of the shutdown's grace period: started payments are finished, no new ones are started. */
  readonly tooLate: () => boolean;
  readonly upstreams: Upstreams;
  /** How many upstreams are being asked before a payment of each payer is settled, in this process. */
  readonly asking: Map<Address, number>;
  readonly unpaidStreams: UnpaidStreams;
}

interface Wanted {
  readonly digest: Hex;
  readonly payer: Address;
  /** A payment that has landed is taken, and decided immediately: its call waits. */
  readonly hasLanded: boolean;
}

/** Step 6: whether there is room for one more call, and for one more settlement whose outcome may stay unknown. */
export async function checkCapacity(
  context: CapacityPorts,
  request: OpenedRequest,
  job: Job,
  { digest, payer, hasLanded }: Wanted,
  caller?: AuthorizedCaller,
): Promise<ErrorRefusal | undefined> {
  if (!hasLanded && isRunnerAway(context, job)) return refusal(request, 'runner_unavailable', { digest });
  if (!hasLanded && request.route) {
    const { upstream } = request.route.config;
    if (context.upstreams.of(upstream).isOpen()) return refusal(request, 'upstream_unavailable', { digest });
  }
  if (context.tooLate()) return enqueueFailed(job, digest, 'stopping', caller);
  const { maxOutstandingCalls } = context.config.limits;
  if (openPaidCalls(context) >= maxOutstandingCalls) return enqueueFailed(job, digest, 'outbox_full', caller);
  if (!hasLanded && !(await hasSettlementSlot(context, payer)))
    return enqueueFailed(job, digest, 'too_many_unsettled', caller);
  return undefined;
}

/** Of one payer at the same time: one balance with a thousand signatures buys no thousand calls of an upstream. */
export const maxUnpaidAnswers = 4;

/** Takes a place of a payer for an answer that is not paid yet, or gives it back. */
export function changePlaces({ asking }: Pick<CapacityPorts, 'asking'>, payer: Address, by: 1 | -1): void {
  const count = (asking.get(payer) ?? 0) + by;
  if (count > 0) asking.set(payer, count);
  else asking.delete(payer);
}

export type UnpaidStreams = ReturnType<typeof createUnpaidStreams>;

/** Longer than a payment by which another stream can be begun may last. */
const heldAgainstMs = 3_600_000;

/**
 * The payers whose stream was passed on and not paid after it: each of their answers is for a time given once it is paid, so that
 * withdrawing a signature or the money buys few streams.
 * @param nowMs a monotonic clock
 */
export function createUnpaidStreams(nowMs: () => number = () => performance.now()) {
  const endsAtMs = createBoundedCache<Address, number>(payersKept);
  return {
    note: (payer: Address): void => endsAtMs.set(payer, nowMs() + heldAgainstMs),
    isOf: (payer: Address): boolean => (endsAtMs.get(payer) ?? 0) > nowMs(),
  };
}

/** A payer's payments without a known outcome take at most this share of the places of all. */
const payersShare = 1 / 10;

/**
 * Whether one more payment of this payer may be started although its outcome may stay unknown. Such payments have a number of places,
 * so that sales stop before too many are in doubt; the undecided ones of one payer never take the last places of others. A payment that
 * cannot be settled any more waits for its chain alone, and holds no place: a chain that cannot be read does not stop sales.
 */
async function hasSettlementSlot(
  { lane, undecided, settings, config, db }: CapacityPorts,
  payer: Address,
): Promise<boolean> {
  const { unsettledCalls } = lane.state;
  const { maxUnsettledCalls } = config.limits;
  const mostOfPayer = Math.max(1, Math.floor(maxUnsettledCalls * payersShare));
  // no client has more slots than there are
  if (unsettledCalls < mostOfPayer) return true;
  if ((await undecided.of(payer, underWaySecs(settings))) >= mostOfPayer) return false;
  if (unsettledCalls < maxUnsettledCalls) return true;
  return (await countPayable(db, settings.maxTimeoutSecs + underWaySecs(settings))) < maxUnsettledCalls;
}

export type UndecidedCounts = ReturnType<typeof createUndecidedCounts>;

/** A count is used for so long: a payment counts a minute after its start at the earliest, and the read model is as old. */
const countedForMs = 1_000;
const payersKept = 10_000;

/**
 * How many payments of a payer are undecided, counted at most once a second: to count 2,000 rows for each payment took PostgreSQL more time than
 * the payment itself.
 * @param nowMs a monotonic clock
 */
export function createUndecidedCounts(db: LedgerDatabase, nowMs: () => number = () => performance.now()) {
  const known = createBoundedCache<Address, { readonly atMs: number; readonly count: Promise<number> }>(
    payersKept,
  );
  return {
    of(payer: Address, afterSecs: number): Promise<number> {
      const last = known.get(payer);
      if (last && nowMs() - last.atMs < countedForMs) return last.count;
      const count = countUndecided(db, payer, afterSecs);
      known.set(payer, { atMs: nowMs(), count });
      // the next one asks again
      count.catch(() => known.delete(payer));
      return count;
    },
  };
}

export type RunnerSilence = ReturnType<typeof createRunnerSilence>;

/**
 * For how long the runners of a service have taken nothing, although calls wait for them. Runners take the oldest call first: while the same call stays the oldest, and none is leased, they take nothing. A process that
 * starts counts from when the call was due.
 * @param nowMs a monotonic clock
 */
export function createRunnerSilence(nowMs: () => number = () => performance.now()) {
  let heads: ReadonlyMap<number, { readonly callId: number; readonly sinceMs: number }> | undefined;
  return {
    /** Takes what a background check has read. */
    observe(waiting: readonly WaitingCalls[]): void {
      const before = heads;
      const silent = waiting.filter(({ isLeased }) => !isLeased);
      heads = new Map(
        silent.map(({ serviceId, oldestCallId: callId, oldestMs }) => {
          const known = before?.get(serviceId);
          const startMs = before ? nowMs() : nowMs() - oldestMs;
          return [serviceId, known?.callId === callId ? known : { callId, sinceMs: startMs }];
        }),
      );
    },
    /** Whole seconds; 0 while no call of the service waits or a runner works on one. */
    secsOf(serviceId: number): number {
      const head = heads?.get(serviceId);
      return head ? Math.floor((nowMs() - head.sinceMs) / 1_000) : 0;
    },
  };
}

/** Whether a job must not be sold now: it has no runner, or its policy bounds the silence of its runners. 0 means no bound. */
export function isRunnerAway(
  { runnerSilence }: Pick<CapacityPorts, 'runnerSilence'>,
  {
    serviceId,
    hasRunner,
    maxRunnerSilenceSecs,
  }: Pick<Job, 'serviceId' | 'hasRunner' | 'maxRunnerSilenceSecs'>,
): boolean {
  if (!hasRunner) return true;
  return maxRunnerSilenceSecs > 0 && runnerSilence.secsOf(serviceId) >= maxRunnerSilenceSecs;
}
