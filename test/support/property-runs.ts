import { processEnvironment } from '../../src/base/config/environment.ts';
import { timeLimits } from './time-limits.ts';

const seed = 20_261_128;
const usualRuns = 100;

interface PropertyRuns {
  readonly numRuns: number;
  readonly seed?: number;
  readonly interruptAfterTimeLimit: number;
  readonly markInterruptAsFailure: true;
}

/**
 * How often a property is tried. `npm test` draws the same cases each time, so that a failure concerns the change; `npm run test:rigs` draws
 * many more, and others each time (TEST_PROPERTY_TIMES=N: N times as many). fast-check prints the seed of a failure, and looks for a
 * smaller case only while the test's own time limit leaves it time to print.
 */
export function propertyRuns(count = usualRuns): PropertyRuns {
  const times = Number(processEnvironment()['TEST_PROPERTY_TIMES'] ?? 0);
  const limitMs = times > 0 ? timeLimits.rigMs : timeLimits.testMs;
  const runs = times > 0 ? { numRuns: count * times } : { numRuns: count, seed };
  return { ...runs, interruptAfterTimeLimit: limitMs * 0.75, markInterruptAsFailure: true };
}
