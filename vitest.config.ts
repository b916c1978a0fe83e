import path from 'node:path';
import { defineConfig } from 'vitest/config';
import { timeLimits } from './test/support/time-limits.ts';

const setupFiles = ['test/support/each-test.ts'];
const common = {
  pool: 'forks',
  // of the commands and gateways that tests start
  env: { NODE_COMPILE_CACHE: path.join(import.meta.dirname, 'node_modules/.cache/tollbook') },
} as const;

export default defineConfig({
  test: {
    globalSetup: ['test/support/postgres-server.ts', 'test/support/browser-server.ts'],
    // most tests wait more than they work: two cores take four
    maxWorkers: 4,
    projects: [
      {
        test: {
          ...common,
          setupFiles,
          name: 'tests',
          include: ['test/**/*.test.ts'],
          // a process imports the program once, for all files that it runs: whatever a test starts or changes ends with it
          isolate: false,
          testTimeout: timeLimits.testMs,
          hookTimeout: timeLimits.testMs,
        },
      },
      {
        test: {
          ...common,
          setupFiles,
          name: 'rigs',
          include: ['test/**/*.rig.ts'],
          testTimeout: timeLimits.rigMs,
          hookTimeout: timeLimits.rigMs,
        },
      },
    ],
  },
});
