import {
  makeClockSteps,
  makeConfigs,
  makeDatabaseFaults,
  makeOutages,
  makeReorgs,
  makeStrikes,
  makeTurnover,
} from './draw-faults.ts';
import { makeScenario, makeSiegeScenario } from './draw-scenarios.ts';
import { type ConfigVariant, siegeConfig } from './gateway-config.ts';
import type { Random } from './random.ts';
import {
  hasCredit,
  hasRoutes,
  mayHaveOperator,
  siegeEvery,
  type Schedule,
  type ScheduleOptions,
} from './schedule.ts';

/** The schedule of a run: a function of the seed and the options alone. */
export function makeSchedule(random: Random, options: ScheduleOptions): Schedule {
  const { run, kind } = options;
  const isSiege = run % siegeEvery === siegeEvery - 1 && kind === undefined;
  return isSiege ? makeSiege(random, options) : makeUsual(random, options);
}

function makeUsual(random: Random, options: ScheduleOptions): Schedule {
  // a lossy turnover may lose credit that was sold: only paid jobs can be recovered from the chain
  // and the judge of routes does not leave out what is lost
  const drawn =
    hasCredit(options) || hasRoutes(options) ? undefined : makeTurnover(random.fork('turnover'), options);
  const loses = drawn !== undefined && drawn.kind !== 'synchronous_failover';
  const strikes = makeStrikes(random.fork('strikes'), options);
  // without an anchor, a gateway is quiet that starts after a failover which no gateway ran through
  const needsLog = !loses && strikes.some(({ what }) => what === 'kill_gateway');
  const turnover = drawn && { ...drawn, hasLog: drawn.hasLog || needsLog };
  const sellsCredit = hasCredit(options);
  // a spend whose block is replaced is never paid, and its account's later ones have the wrong nonce
  const reorgs = turnover || sellsCredit ? [] : makeReorgs(random.fork('reorgs'), options);
  const configs = makeConfigs(random.fork('configs'), options).map((config) =>
    hasShortQuotes(options) ? { ...config, quoteTtlSecs: shortQuoteSecs } : config,
  );
  return {
    // a gateway that is killed forgets which events were acknowledged
    strikes: loses ? strikes.filter(({ what }) => what !== 'kill_gateway') : strikes,
    databaseFaults: turnover ? [] : makeDatabaseFaults(random.fork('mishaps'), options),
    outages: makeOutages(random.fork('outages'), options, false),
    turnover,
    clockSteps: turnover ? [] : makeClockSteps(random.fork('clocks'), options),
    reorgs,
    holdMs: reorgs.length > 0 && random.fork('held').chance(0.5) ? heldCallMs : 0,
    configs: reorgs.length > 0 || sellsCredit ? configs.map(followingTheChain) : configs,
    scenarios: makeEach(random, options, makeScenario),
    isSiege: false,
    hasCredit: sellsCredit,
    hasRoutes: hasRoutes(options),
    hasOperator: !turnover && mayHaveOperator(options),
  };
}

/** A client of the kind `last_moment` waits for the end of its quote. */
const shortQuoteSecs = 10;

function hasShortQuotes({ run, kind, processes }: ScheduleOptions): boolean {
  return processes > 1 && (run % 4 === 3 || kind === 'last_moment');
}

/** Longer than gateways take to notice a reorg, shorter than the time limit of a runner that leases. */
const heldCallMs = 5_000;

/** A gateway that never looks at the chain does not learn of a reorg, and credits what a facilitator reports falsely. */
function followingTheChain(config: ConfigVariant): ConfigVariant {
  return config.confirm === 'never' ? { ...config, confirm: 'before' } : config;
}

function makeSiege(random: Random, options: ScheduleOptions): Schedule {
  return {
    strikes: [],
    databaseFaults: [],
    outages: makeOutages(random.fork('outages'), options, true),
    turnover: undefined,
    reorgs: [],
    holdMs: 0,
    clockSteps: [],
    configs: Array.from({ length: options.processes }, () => siegeConfig),
    scenarios: makeEach(random, options, makeSiegeScenario),
    isSiege: true,
    hasCredit: false,
    hasRoutes: false,
    hasOperator: false,
  };
}

function makeEach(random: Random, options: ScheduleOptions, make: typeof makeScenario) {
  return Array.from({ length: options.scenarioCount }, (_, index) =>
    make(random.fork(`visit ${index}`), index, options),
  );
}
