import { expect, onTestFinished, test } from 'vitest';
import { createDatabase } from '../support/database.ts';
import { isNatsInstalled, startNatsCluster } from '../support/nats.ts';
import { faultsOf, type FleetOptions, runFleet } from './run.ts';

if (!isNatsInstalled)
  process.stderr.write(
    '\n*** A FLEET OVER JETSTREAM: NOT CHECKED, nats-server NOT INSTALLED (apt-get install nats-server)\n\n',
  );

/** A short form of `npm run fleet`. */
async function run(options: Pick<FleetOptions, 'mode' | 'nats' | 'kills'>, calls: number) {
  const database = await createDatabase();
  const report = await runFleet({
    databaseUrl: database.url,
    runners: 3,
    concurrency: 8,
    calls,
    seed: '1',
    say() {},
    ...options,
  });
  return { report, faults: faultsOf({ ...report, kills: options.kills }) };
}

test('a fleet that leases its calls does each with one idempotency key under one live lease, while its runners are killed', async () => {
  const { report, faults } = await run({ mode: 'lease', kills: true }, 600);
  expect(faults).toEqual([]);
  expect(report.killedRunners).toBeGreaterThan(0);
});

test.skipIf(!isNatsInstalled)(
  'a fleet over three servers of a broker does each call with one idempotency key under one live lease, while runners and servers are killed',
  async () => {
    const nats = await startNatsCluster({ servers: 3 });
    onTestFinished(() => nats.stop());
    const { report, faults } = await run({ mode: 'jetstream', nats, kills: true }, 600);
    expect(faults).toEqual([]);
    expect(report.killedRunners).toBeGreaterThan(0);
  },
);
