import { processEnvironment } from '../../src/base/config/environment.ts';

const seed = 20_261_128;
const usualRuns = 100;

/**
 * How often a property is tried. `npm test` draws the same cases each time, so that a failure concerns the change; `npm run test:rigs` draws
 * many more, and others each time (TEST_PROPERTY_TIMES=N: N times as many). fast-check prints the seed of a failure.
 */
export function propertyRuns(count = usualRuns): { readonly numRuns: number; readonly seed?: number } {
  const times = Number(processEnvironment()['TEST_PROPERTY_TIMES'] ?? 0);
  return times > 0 ? { numRuns: count * times } : { numRuns: count, seed };
}
