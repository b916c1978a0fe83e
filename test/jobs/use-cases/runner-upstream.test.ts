import { pino } from 'pino';
import { expect, test } from 'vitest';
import { createPromiseTracker } from '../../../src/base/runtime/promise-tracker.ts';
import { createStreamWatch } from '../../../src/calls/use-cases/stream-watch.ts';
import { createRunnerSilence } from '../../../src/jobs/use-cases/capacity.ts';
import { createRunnerUpstreams } from '../../../src/jobs/use-cases/routes/runner-upstream.ts';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { triggerProcess } from '../../support/trigger-process.ts';

const chain = useChain();

test('a request that waits for its runner leaves no wait behind at each look', async () => {
  const process = await triggerProcess(chain, await createDatabase());
  const watch = createStreamWatch(process, () => false);
  let [begun, open] = [0, 0];
  const streams = {
    ...watch,
    grown(...all: Parameters<typeof watch.grown>) {
      [begun, open] = [begun + 1, open + 1];
      return watch.grown(...all).finally(() => (open -= 1));
    },
  };
  const settings = process.config.jobs;
  const route = settings && { upstream: 'job:1/0' };
  const ports = {
    ...process,
    settings,
    streams,
    results: undefined,
    stopping: () => false,
    flows: createPromiseTracker(),
    asking: new Map(),
    runnerSilence: createRunnerSilence(),
    log: pino({ level: 'silent' }),
  };
  const routes = { all: new Map([['7/0', route]]) };
  const upstream = createRunnerUpstreams({ routes } as never, () => ports as never)['job:1/0'];
  const answer = upstream?.request({
    method: 'POST',
    target: '/',
    body: Buffer.from('a'),
    timeoutMs: 3_500,
    signal: new AbortController().signal,
    headers: [['x-net-idempotency-key', `0x${'5e'.repeat(32)}`]],
  });
  expect(await answer).toMatchObject({ reason: 'upstream_timeout' });
  await expect.poll(() => open).toBe(0);
  expect(begun).toBeGreaterThan(2);
});
