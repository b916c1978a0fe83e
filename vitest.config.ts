import path from 'node:path';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    globalSetup: ['test/support/postgres-server.ts'],
    include: ['test/**/*.test.ts'],
    // the longest test takes half a minute on a quiet machine, and a busy one takes four times as long
    testTimeout: 240_000,
    hookTimeout: 240_000,
    // most tests wait more than they work: two cores take four
    maxWorkers: 4,
    pool: 'forks',
    // of the commands and gateways that tests start
    env: { NODE_COMPILE_CACHE: path.join(import.meta.dirname, 'node_modules/.cache/tollbook') },
  },
});
