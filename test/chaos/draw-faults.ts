import { type ConfigVariant, usualConfig } from './gateway-config.ts';
import type { Random } from './random.ts';
import {
  type ClockStep,
  type DatabaseFault,
  type Fate,
  hasCredit,
  hasRoutes,
  type Outage,
  type Reorg,
  routesEvery,
  type ScheduleOptions,
  siegeEvery,
  type Strike,
  type Turnover,
  turnoverEvery,
} from './schedule.ts';
import { gatewaySteps, type Step } from './steps.ts';

/** Some runs have the usual configuration, the others one of its own for each gateway. */
export function makeConfigs(random: Random, { processes }: ScheduleOptions): ConfigVariant[] {
  const isUsual = random.chance(0.4);
  const isRequired = random.chance(0.25);
  const hasQuoteKey = random.chance(0.7);
  return Array.from({ length: processes }, () => {
    const variant: ConfigVariant = {
      ...usualConfig,
      hasQuoteKey,
      markupBps: random.pick([0, 200, 5_000]),
      quoteTtlSecs: random.pick([10, 30, 300]),
      // with one gateway that believes the facilitator, a false report may be believed
      confirm: isRequired ? 'required' : random.pick(['before', 'before', 'after', 'never'] as const),
    };
    return isUsual ? { ...usualConfig, hasQuoteKey } : variant;
  });
}

const turnovers = ['synchronous_failover', 'asynchronous_failover', 'restore'] as const;

export function makeTurnover(random: Random, { run, loadMs }: ScheduleOptions): Turnover | undefined {
  if (run % turnoverEvery !== turnoverEvery - 3) return undefined;
  return {
    kind: random.pick(turnovers),
    // without a log, nothing but the gateways' own memory tells that events are lost
    hasLog: random.chance(0.5),
    atMs: random.between(loadMs >> 2, loadMs >> 1),
    forMs: random.between(loadMs >> 2, loadMs >> 1),
  };
}

const fates: readonly Fate[] = ['landed again', 'cancelled', 'left'];
/** Blocks that are deeper than this are final. */
const deepestReorg = 2;

export function makeReorgs(random: Random, { scenarioCount }: ScheduleOptions): Reorg[] {
  if (!random.chance(0.3)) return [];
  return Array.from({ length: random.between(1, 3) }, () => ({
    nth: random.between(1, scenarioCount >> 1),
    // a gateway may have recorded the settlement by then
    delayMs: random.between(0, 500),
    depth: random.between(1, deepestReorg),
    fates: random.shuffled(fates),
  }));
}

export function makeClockSteps(random: Random, { processes, loadMs }: ScheduleOptions): ClockStep[] {
  return (['database', random.between(0, processes - 1)] as const).flatMap((of) => {
    const step = {
      atMs: random.between(0, loadMs),
      forMs: random.between(300, 1_500),
      bySecs: random.pick([-7_200, -600, 20, 600, 7_200]),
      of,
    };
    return random.chance(0.25) ? step : [];
  });
}

export function makeOutages(random: Random, { loadMs }: ScheduleOptions, isSiege: boolean): Outage[] {
  // hostile clients pay without money while it lasts
  if (isSiege) return [{ atMs: random.between(0, loadMs >> 2), forMs: loadMs }];
  if (!random.chance(0.25)) return [];
  return [{ atMs: random.between(0, loadMs >> 1), forMs: random.between(loadMs >> 1, loadMs) }];
}

/** Two kills a run, so that a few runs cover all steps. */
export function makeStrikes(random: Random, options: ScheduleOptions): Strike[] {
  const { rotation, run } = options;
  const turn = run - Math.floor((run + 1) / siegeEvery);
  const killed = [0, 1].flatMap((offset) => rotation[(2 * turn + offset) % rotation.length] ?? []);
  const strikes: Strike[] = killed.map((step) => ({
    step,
    nth: random.between(1, 4),
    what: 'kill_gateway',
    ms: random.between(100, 1_500),
  }));
  const appends = gatewaySteps.filter((step) => step.endsWith('_append'));
  const freeze = (step: Step, what: Strike['what']): Strike => ({
    step,
    nth: random.between(1, 4),
    what,
    ms: random.between(500, 2_500),
  });
  if (hasCredit(options))
    strikes.push(...makeFurtherKills(random.fork('credit'), options.creditRotation, run));
  if (hasRoutes(options))
    strikes.push(
      ...makeFurtherKills(random.fork('routes'), options.routeRotation, Math.floor(run / routesEvery)),
    );
  if (random.chance(0.6)) strikes.push(freeze(random.pick(appends), 'freeze_gateway'));
  if (random.chance(0.4)) {
    strikes.push(freeze(random.pick(appends.filter((step) => step.startsWith('during'))), 'freeze_backend'));
  }
  if (random.chance(0.5))
    strikes.push({ step: 'leased', nth: random.between(1, 2), what: 'kill_runner', ms: 0 });
  if (random.chance(0.4)) {
    strikes.push({
      step: 'pushed',
      nth: random.between(1, 5),
      what: 'kill_runner',
      ms: random.between(0, 20),
    });
  }
  return strikes;
}

/** Two more kills, at steps of credit and spends, or of routes. */
function makeFurtherKills(random: Random, rotation: readonly Step[], turn: number): Strike[] {
  return [0, 1].flatMap((offset) => {
    const step = rotation[(2 * turn + offset) % rotation.length];
    const [nth, ms] = [random.between(1, 3), random.between(100, 1_500)];
    return step ? { step, nth, what: 'kill_gateway' as const, ms } : [];
  });
}

export function makeDatabaseFaults(random: Random, { loadMs }: ScheduleOptions): DatabaseFault[] {
  if (!random.chance(0.5)) return [];
  const what = random.pick(['restart_postgres', 'crash_postgres'] as const);
  return [{ atMs: random.between(loadMs >> 2, loadMs), what }];
}
