import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { defineConfig } from 'vitest/config';
import { timeLimits } from './test/support/time-limits.ts';

const setupFiles = ['test/support/each-test.ts'];
/** Of the commands and gateways that tests start. */
const env = { NODE_COMPILE_CACHE: path.join(import.meta.dirname, 'node_modules/.cache/tollbook') };
const testTimes = { testTimeout: timeLimits.testMs, hookTimeout: timeLimits.testMs };
const rigTimes = { testTimeout: timeLimits.rigMs, hookTimeout: timeLimits.rigMs };

const tests = ['test/**/*.test.ts'];
const withProperties = globSync(tests, { cwd: import.meta.dirname }).filter((file) =>
  readFileSync(path.join(import.meta.dirname, file), 'utf8').includes("from 'fast-check'"),
);

export default defineConfig({
  test: {
    globalSetup: ['test/support/postgres-server.ts', 'test/support/browser-server.ts'],
    pool: 'forks',
    // most tests wait more than they work: two cores take four
    maxWorkers: 4,
    projects: [
      {
        // every guarantee that a change can break in one process or two. A worker imports the program once, for all files that it runs:
        // whatever a test starts or changes ends with it
        test: { name: 'tests', include: tests, isolate: false, setupFiles, env, ...testTimes },
      },
      {
        // many processes, or minutes
        test: { name: 'rigs', include: ['test/**/*.rig.ts'], setupFiles, env, ...rigTimes },
      },
      {
        // the properties of the tests again, with many more cases, which differ from run to run
        test: {
          name: 'properties',
          include: withProperties,
          isolate: false,
          setupFiles,
          env: { ...env, TEST_PROPERTY_TIMES: '5' },
          ...rigTimes,
        },
      },
    ],
  },
});
