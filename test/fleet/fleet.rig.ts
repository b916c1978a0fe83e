import { expect, onTestFinished, test } from 'vitest';
import { withRig } from '../chaos/rig.ts';
import { createDatabase } from '../support/database.ts';
import { notChecked } from '../support/installed.ts';
import { isNatsInstalled, startNatsCluster } from '../support/nats.ts';
import { faultsOf, type FleetOptions, runFleet } from './run.ts';

notChecked('A FLEET OVER JETSTREAM', isNatsInstalled ? [] : ['nats-server']);

/** A short form of `npm run fleet`, with kills. */
async function run(options: Pick<FleetOptions, 'mode' | 'nats'>) {
  const { url: databaseUrl } = await createDatabase();
  const report = await withRig((rig) =>
    runFleet({
      rig,
      databaseUrl,
      runners: 3,
      concurrency: 8,
      calls: 600,
      kills: true,
      seed: '1',
      say() {},
      ...options,
    }),
  );
  return { report, faults: faultsOf({ ...report, kills: true }) };
}

test('a fleet that leases its calls does each with one idempotency key under one live lease, while its runners are killed', async () => {
  const { report, faults } = await run({ mode: 'lease' });
  expect(faults).toEqual([]);
  expect(report.killedRunners).toBeGreaterThan(0);
});

test.skipIf(!isNatsInstalled)(
  'a fleet over three servers of a broker does each call with one idempotency key under one live lease, while runners and servers are killed',
  async () => {
    const nats = await startNatsCluster({ servers: 3 });
    onTestFinished(() => nats.stop());
    const { report, faults } = await run({ mode: 'jetstream', nats });
    expect(faults).toEqual([]);
    expect(report.killedRunners).toBeGreaterThan(0);
  },
);
