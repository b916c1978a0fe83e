import path from 'node:path';
import { defineConfig } from 'vitest/config';

const common = {
  // the longest test takes half a minute on a quiet machine, and a busy one takes four times as long
  testTimeout: 240_000,
  hookTimeout: 240_000,
  pool: 'forks',
  // of the commands and gateways that tests start
  env: { NODE_COMPILE_CACHE: path.join(import.meta.dirname, 'node_modules/.cache/tollbook') },
} as const;

/** Their files share processes, each of which imports the program once: whatever a test starts ends with it. */
const shared = ['config', 'credit', 'domain', 'http', 'jobs', 'log', 'runtime', 'store'].map(
  (directory) => `test/${directory}/**/*.test.ts`,
);

export default defineConfig({
  test: {
    globalSetup: ['test/support/postgres-server.ts'],
    // most tests wait more than they work: two cores take four
    maxWorkers: 4,
    projects: [
      { test: { ...common, name: 'alone', include: ['test/**/*.test.ts'], exclude: shared } },
      { test: { ...common, name: 'shared', include: shared, isolate: false } },
    ],
  },
});
