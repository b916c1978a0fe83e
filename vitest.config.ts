import path from 'node:path';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    globalSetup: ['test/support/postgres-server.ts'],
    include: ['test/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // most tests wait more than they work: two cores take four
    maxWorkers: 4,
    pool: 'forks',
    // of the commands and gateways that tests start
    env: { NODE_COMPILE_CACHE: path.join(import.meta.dirname, 'node_modules/.cache/tollbook') },
  },
});
