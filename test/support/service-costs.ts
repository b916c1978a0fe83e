import { appendFileSync } from 'node:fs';
import { processEnvironment } from '../../src/base/config/environment.ts';
import { liveMs } from './meter.ts';

/** Names the file that scripts/test-costs.ts reads. */
export const costsFileVariable = 'TEST_COSTS_FILE';

/** Notes the processor time of a service that the whole run shares, where somebody measures it. Call it before the service stops. */
export function noteCosts(service: string, processName: string): void {
  const file = processEnvironment()[costsFileVariable];
  if (file) appendFileSync(file, `${service}\t${liveMs(processName)}\n`);
}
