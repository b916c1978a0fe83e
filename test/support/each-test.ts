import fc from 'fast-check';
import { beforeEach } from 'vitest';
import { type Spent, switchTo, takeSpent } from './meter.ts';
import { propertyRuns } from './property-runs.ts';

declare module 'vitest' {
  interface TaskMeta {
    /** What the test cost, with what this process did since the test before: for `npm run test:costs`. */
    spent?: Spent;
  }
}

fc.configureGlobal(propertyRuns());

beforeEach(({ onTestFinished }) => {
  switchTo('the tests themselves');
  // the first one registered runs last: after what the test itself has to close
  onTestFinished(({ task }) => {
    task.meta.spent = takeSpent();
    switchTo('loading');
  });
});
