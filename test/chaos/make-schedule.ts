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
import { siegeEvery, type Schedule, type ScheduleOptions } from './schedule.ts';

/** The schedule of a run: a function of the seed and the options alone. */
export function makeSchedule(random: Random, options: ScheduleOptions): Schedule {
  const { run, kind } = options;
  const isSiege = run % siegeEvery === siegeEvery - 1 && kind === undefined;
  return isSiege ? makeSiege(random, options) : makeUsual(random, options);
}

function makeUsual(random: Random, options: ScheduleOptions): Schedule {
  const turnover = makeTurnover(random.fork('turnover'), options);
  const loses = turnover !== undefined && turnover.kind !== 'synchronous_failover';
  const strikes = makeStrikes(random.fork('strikes'), options);
  const reorgs = turnover ? [] : makeReorgs(random.fork('reorgs'), options);
  const configs = makeConfigs(random.fork('configs'), options);
  return {
    // a gateway that is killed forgets which events were acknowledged
    strikes: loses ? strikes.filter(({ what }) => what !== 'kill_gateway') : strikes,
    databaseFaults: turnover ? [] : makeDatabaseFaults(random.fork('mishaps'), options),
    outages: makeOutages(random.fork('outages'), options, false),
    turnover,
    clockSteps: turnover ? [] : makeClockSteps(random.fork('clocks'), options),
    reorgs,
    configs: reorgs.length > 0 ? configs.map(followingTheChain) : configs,
    scenarios: makeEach(random, options, makeScenario),
    isSiege: false,
  };
}

/** A gateway that never looks at the chain does not learn of a reorg. */
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
    clockSteps: [],
    configs: Array.from({ length: options.processes }, () => siegeConfig),
    scenarios: makeEach(random, options, makeSiegeScenario),
    isSiege: true,
  };
}

function makeEach(random: Random, options: ScheduleOptions, make: typeof makeScenario) {
  return Array.from({ length: options.scenarioCount }, (_, index) =>
    make(random.fork(`visit ${index}`), index, options),
  );
}
