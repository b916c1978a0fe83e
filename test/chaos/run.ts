import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { createAmbushes } from './ambushes.ts';
import { createRecords, type Records, type SignedOnce } from './records.ts';
import { type Participants, startParticipants } from './participants.ts';
import { type Checked, checkRun } from './checks/check-run.ts';
import type { Violation } from './checks/violation.ts';
import { createFreezer } from './freezer.ts';
import { createChainGate } from './chain-gate.ts';
import { createFrontRunner } from './front-runner.ts';
import { createFaultInjector, type FaultInjector } from './fault-injector.ts';
import { createClocks, stepClock } from './clocks.ts';
import { endSilence, expireLeases, hurryCredit, openCredit } from './idle-credit.ts';
import { type Prepared, prepareCredit } from './prepare-credit.ts';
import {
  ageCall,
  hurryRoutes,
  hurryWatched,
  openCalls,
  openConfirmations,
  pullDueTimes,
  waitUntilIdle,
} from './idle.ts';
import { createRandom, type Random } from './random.ts';
import { createScope } from './rig.ts';
import { provocations } from './hostile-scenarios.ts';
import { makeSchedule } from './make-schedule.ts';
import { type DatabaseFault, isCreditKind, type Schedule, type ScheduleOptions } from './schedule.ts';
import type { Place } from './faults.ts';
import { type RefundOperator, startRefundOperator } from './refund-operator.ts';
import type { SiegeLimits } from './checks/sales.ts';
import { goLiveIfQuiet, type LedgerRecovery, recoverAgain, recoverLedger } from './recovery.ts';
import { reorg } from './reorgs.ts';
import type { RunParts } from './run-parts.ts';
import { runScenario } from './scenarios.ts';
import { withOwner } from './sql.ts';
import { turnOver } from './turnovers.ts';
import { drawPayees, type Environment } from './environment.ts';

export interface RunOptions extends ScheduleOptions {
  readonly environment: Environment;
  readonly seed: string;
}

export interface RunReport {
  readonly run: number;
  readonly schedule: Schedule;
  readonly violations: readonly Violation[];
  readonly counts: ReadonlyMap<string, number>;
  readonly traceLines: readonly string[];
  /** Numbers of payments by outcome. */
  readonly payments: PaymentCounts;
  readonly log: string;
  readonly ledger: string;
  /** What each client sent and received, one JSON line each. */
  readonly clients: readonly string[];
  readonly ms: number;
}

export interface PaymentCounts {
  readonly signed: number;
  readonly landed: number;
  /** Of them, those by upto, and those by a permit of another scheme. */
  readonly upto: number;
  readonly permits: number;
  readonly accepted: number;
  readonly refused: number;
  /** Refused payments that a later request of the same client started after all. */
  readonly excused: number;
  /** Completions that clients asked for, and those that were answered with 200. */
  readonly asked: number;
  readonly completions: number;
  readonly spends: number;
}

/** Faults continue after the last client has started, for these multiples of the load time: at least, and at most. */
const faultTail = { min: 0.6, max: 3 };
/** The tail ends early once this number of settlements, or of completions, per scenario could have failed. */
const eventsPerScenario = 0.7;
/** Longer than a lease and than the time for which a settle of a dead process is left alone. */
const clockStepSecs = 9;
const idleTimeoutMs = 90_000;
const hurryEveryMs = 1_000;
const ageEveryMs = 300;

function randomOf({ seed, run }: Pick<RunOptions, 'seed' | 'run'>): Random {
  return createRandom(`${seed}/${run}`);
}

/** What is decided about a run before it starts. */
export function scheduleOf(options: Omit<RunOptions, 'environment'>): Schedule {
  return makeSchedule(randomOf(options).fork('schedule'), options);
}

/** One run: clients pay while faults happen; the faults end; when all work is done, ledger, chain and records are compared. */
export async function makeRun(options: RunOptions): Promise<RunReport> {
  const { environment } = options;
  const deadline = new AbortController();
  const parts = await makeParts(options, deadline.signal);
  await environment.createDatabase(parts.database);
  try {
    return await runWith(parts, options, deadline);
  } finally {
    deadline.abort();
    parts.freezer.thaw();
    await parts.scope.close();
    await environment.dropDatabase(parts.database);
  }
}

async function makeParts(options: RunOptions, deadline: AbortSignal): Promise<RunParts> {
  const { environment, run } = options;
  const random = randomOf(options);
  const schedule = scheduleOf(options);
  const faults = createFaultInjector(random.fork('faults'), schedule);
  const database = `run_${run}`;
  const url = (): string => environment.postgres.url(database);
  const gate = createChainGate();
  const clockOf = (index: number) => path.join(environment.dir, `${database}-${index + 1}.clock`);
  return {
    environment,
    schedule,
    random,
    database,
    url,
    ...(await drawPayees(environment, random)),
    scope: createScope(),
    faults,
    records: createRecords(),
    freezer: createFreezer(),
    gate,
    frontRunner: createFrontRunner(environment.chain, gate, faults),
    ambushes: createAmbushes((nonce, isOver) => ageWhile(url, nonce, () => isOver() || deadline.aborted)),
    clocks: createClocks(url, clockOf),
    deadline,
  };
}

async function runWith(parts: RunParts, options: RunOptions, deadline: AbortController): Promise<RunReport> {
  const startedAt = performance.now();
  const { environment, schedule, random, url, faults, records, freezer, clocks } = parts;
  let quietSince = 0;
  faults.over.addEventListener('abort', () => (quietSince = Date.now()), { once: true });
  const participants = await startParticipants(parts);
  await Promise.all(participants.gateways.map((gateway) => gateway.untilUp()));
  const prepared = schedule.hasCredit
    ? await prepareCredit(environment, url(), schedule.scenarios, random.fork('prepared'), records)
    : new Map<string, Prepared>();
  const urls = participants.gateways.map((gateway) => gateway.url);
  const operator = schedule.hasOperator ? await startRefundOperator(parts, urls) : undefined;
  faults.beginLoad();
  const isStarted = (signed: SignedOnce) => isInLedger(url, signed, deadline.signal);
  const routeUrls = participants.gateways.flatMap(({ routesUrl }) => routesUrl ?? []);
  const scenarioParts = { ...parts, urls, routeUrls, isStarted, prepared };
  if (schedule.hasCredit) void expireLeases(url, AbortSignal.any([faults.over, deadline.signal]));
  let isLoadOver = false;
  let isTimeUp = false;
  const scenarios = Promise.all(
    schedule.scenarios.map((scenario) => runScenario(scenarioParts, scenario, random.fork(scenario.id))),
  ).finally(() => (isLoadOver = true));
  // a rejection is reported by the await below
  scenarios.catch(() => {});
  const [lost] = await Promise.all([
    schedule.turnover && turnOver({ ...parts, participants }, schedule.turnover),
    schedule.isSiege
      ? sleep(options.loadMs)
      : waitForLoad(faults, schedule, options).finally(() => (isTimeUp = true)),
    ...schedule.databaseFaults.map((databaseFault) => restartDatabase(databaseFault, parts)),
    ...schedule.reorgs.map((one) => reorg(parts, one, () => isTimeUp)),
    ...schedule.clockSteps.map((step) => stepClock(clocks, step, faults)),
  ]);
  let recovery: LedgerRecovery = { found: [], isUnfinished: false };
  if (lost) {
    await sleep(options.loadMs >> 1);
    faults.end();
    freezer.thaw();
    recovery = await recoverLedger({ ...parts, participants, loss: lost });
  }
  const loss = lost && { ...lost, resumedAt: Date.now() };
  const left = await waitUntilSettled(parts, participants, operator, () => isLoadOver);
  deadline.abort();
  await scenarios;
  const foundAgain = recovery.isUnfinished ? await recoverAgain({ ...parts, participants }) : [];
  const checked = await checkRun({
    ...parts,
    loss,
    quietSince,
    sentRefunds: (await operator?.sent()) ?? [],
    found: [...recovery.found, ...foundAgain],
    isClockMoved: schedule.clockSteps.some(({ of }) => of === 'database'),
    siegeLimits: schedule.isSiege ? siegeLimits(schedule) : undefined,
    believesLies: schedule.configs.some(({ confirm }) => confirm !== 'required'),
    network: environment,
    url: url(),
    participants,
    left,
    mustSell: schedule.isSiege ? honestOf(schedule) : [],
  });
  return {
    run: options.run,
    schedule,
    violations: checked.violations,
    counts: faults.counts,
    traceLines: faults.traceLines,
    payments: countPayments(records, checked),
    log: [...participants.gateways, ...participants.runners].map(({ log }) => log()).join('\n'),
    ledger: checked.ledger,
    clients: [...records.presentations, ...records.completions, ...records.routeCalls].map(asJson),
    ms: performance.now() - startedAt,
  };
}

/** Within its budget, each request of a hostile client may leave a quote and a refusal; honest clients leave some. */
function siegeLimits({ configs, scenarios }: Schedule): SiegeLimits {
  // in one minute, and in the next
  const budget = 2 * configs.reduce((sum, { requestsPerMinute }) => sum + requestsPerMinute, 0);
  const provokers = scenarios.filter(({ kind }) => kind === 'provoker').length;
  const otherEvents = budget + 2 * provokers * provocations + 4 * scenarios.length + 60;
  return { otherEvents, floodOffers: budget };
}

/** Scenarios whose payment must succeed at once. */
function honestOf({ scenarios }: Schedule): string[] {
  return scenarios.flatMap(({ id, kind }) => (kind === 'honest' ? id : []));
}

async function waitForLoad(
  faults: FaultInjector,
  { scenarios }: Schedule,
  { loadMs }: ScheduleOptions,
): Promise<void> {
  const startedAt = performance.now();
  const ofCredit = scenarios.filter(({ kind }) => isCreditKind(kind)).length;
  const isEnough = (place: Place, count: number): boolean => faults.drawn(place) >= count * eventsPerScenario;
  await sleep(loadMs * (1 + faultTail.min));
  const isTailOver = (): boolean =>
    (isEnough('settle', scenarios.length - ofCredit) && isEnough('upstream', ofCredit)) ||
    performance.now() - startedAt > loadMs * (1 + faultTail.max);
  while (!isTailOver()) await sleep(50);
}

async function restartDatabase(
  { atMs, what }: DatabaseFault,
  { environment, faults, freezer }: RunParts,
): Promise<void> {
  await sleep(atMs);
  faults.count(what);
  freezer.thaw();
  await environment.postgres.restart(what === 'crash_postgres' ? 'at_once' : 'in_order');
}

/** Ends the faults and waits until all work is done. Returns what is left when the time-out has passed. */
async function waitUntilSettled(
  parts: RunParts,
  participants: Participants,
  operator: RefundOperator | undefined,
  isLoadOver: () => boolean,
): Promise<string[]> {
  const { url, records, faults, freezer, clocks, schedule } = parts;
  const { hasCredit, hasRoutes } = schedule;
  const hasClockSteps = schedule.clockSteps.length > 0;
  const hasReorgs = schedule.reorgs.length > 0;
  faults.end();
  faults.trace('faults end');
  freezer.thaw();
  for (const gateway of participants.gateways) gateway.thaw();
  const down = await listDown(participants);
  if (down.length > 0) return down;
  if (schedule.turnover?.kind === 'synchronous_failover') await goLiveIfQuiet({ ...parts, participants });
  const owner = new pg.Client(url());
  owner.on('error', () => {});
  await owner.connect();
  try {
    // delayed messages arrive before the clock steps forward
    await waitUntilIdle(
      async () => (participants.pending() > 0 ? ['requests to peers are in flight'] : []),
      2_000,
      faults.trace,
    );
    await clocks.setDatabase(clockStepSecs);
    let underWay = operator ? ['an operator refunds'] : [];
    void operator?.finish().then(
      (left) => (underWay = left),
      (error) => (underWay = [`the operator failed: ${String(error)}`]),
    );
    const decided = (): string[] => decidedNonces(records, hasReorgs);
    let isHurrying = false;
    const hurrying = setInterval(() => {
      if (isHurrying) return;
      isHurrying = true;
      // the connection ends with the wait
      hurryWatched(owner, decided())
        .then(() => (hasClockSteps ? pullDueTimes(owner) : undefined))
        .then(() => (hasRoutes && isLoadOver() ? hurryRoutes(owner) : undefined))
        .then(() => (hasCredit ? hurryCredit(owner) : undefined))
        .catch(() => {})
        .finally(() => (isHurrying = false));
    }, hurryEveryMs);
    const isIdle = new AbortController();
    const silence = hasCredit ? endSilence(clocks, clockStepSecs, isIdle.signal) : undefined;
    try {
      return await waitUntilIdle(
        async () => [
          ...(isLoadOver() ? [] : ['clients wait for answers']),
          ...underWay,
          ...(await openCalls(owner, decided())),
          ...(hasReorgs ? await openConfirmations(owner) : []),
          ...(hasCredit ? await openCredit(owner) : []),
        ],
        idleTimeoutMs,
        faults.trace,
      );
    } finally {
      clearInterval(hurrying);
      isIdle.abort();
      await silence;
    }
  } finally {
    await owner.end();
  }
}

/** Gateways that do not start, with their last words. */
async function listDown({ gateways }: Participants): Promise<string[]> {
  const starts = await Promise.allSettled(gateways.map((gateway) => gateway.untilUp()));
  return starts.flatMap((start) => (start.status === 'rejected' ? [String(start.reason)] : []));
}

/** Of failed payments whose end the chain shows: they have landed, or their nonces are void as long as no reorg changes that. */
function decidedNonces({ landedLate, voided, signed }: Records, hasReorgs: boolean): string[] {
  return [...landedLate.keys(), ...(hasReorgs ? [] : voided)].flatMap((key) => signed.get(key)?.nonce ?? []);
}

/** Lets the call of a stalled payment age and be due, until it is settled again. Which gateway takes it is chance. */
async function ageWhile(url: () => string, nonce: string, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    // a database that is unreachable is asked again
    await withOwner(url(), (owner) => ageCall(owner, nonce)).catch(() => {});
    await sleep(ageEveryMs);
  }
}

/** Whether the payment was started. Repeats the query while the database is down. */
async function isInLedger(url: () => string, { nonce }: SignedOnce, deadline: AbortSignal): Promise<boolean> {
  while (!deadline.aborted) {
    try {
      return await withOwner(url(), async (owner) => {
        const { rows } = await owner.query<{ is_started: boolean }>(
          `select exists (select from tollbook.event where type = 'settlement_started'
             and position($1 in data) > 0) as is_started`,
          [nonce],
        );
        return rows[0]?.is_started ?? false;
      });
    } catch {
      await sleep(100);
    }
  }
  return false;
}

function asJson(value: object): string {
  return JSON.stringify(value, (_, one: unknown) => (typeof one === 'bigint' ? String(one) : one));
}

function countPayments(records: Records, { landed, landedBy, excused, spends }: Checked): PaymentCounts {
  const ended = (end: string): number => records.presentations.filter((one) => one.end === end).length;
  return {
    signed: records.signed.size,
    landed,
    ...landedBy,
    accepted: ended('accepted'),
    refused: ended('refused'),
    excused,
    asked: records.completions.length,
    completions: records.completions.filter((one) => one.end === 'answered').length,
    spends,
  };
}
