import { makeClockSteps, makeConfigs, makeDatabaseFaults, makeOutages, makeStrikes } from './draw-faults.ts';
import { makeScenario, makeSiegeScenario } from './draw-scenarios.ts';
import { siegeConfig } from './gateway-config.ts';
import type { Random } from './random.ts';
import { siegeEvery, type Schedule, type ScheduleOptions } from './schedule.ts';

/** The schedule of a run: a function of the seed and the options alone. */
export function makeSchedule(random: Random, options: ScheduleOptions): Schedule {
  const { scenarioCount: scenarios, run } = options;
  const isSiege = run % siegeEvery === siegeEvery - 1 && options.kind === undefined;
  return {
    strikes: isSiege ? [] : makeStrikes(random.fork('strikes'), options),
    databaseFaults: isSiege ? [] : makeDatabaseFaults(random.fork('mishaps'), options),
    outages: makeOutages(random.fork('outages'), options, isSiege),
    clockSteps: isSiege ? [] : makeClockSteps(random.fork('clocks'), options),
    configs: isSiege
      ? Array.from({ length: options.processes }, () => siegeConfig)
      : makeConfigs(random.fork('configs'), options),
    scenarios: Array.from({ length: scenarios }, (_, index) => {
      const draws = random.fork(`visit ${index}`);
      return isSiege ? makeSiegeScenario(draws, index, options) : makeScenario(draws, index, options);
    }),
    isSiege,
  };
}
