/** `npm run fleet`: docs/scale.md has what it measured. */
import path from 'node:path';
import { parseArgs } from 'node:util';
import { newSeed, oneOf, runCommand, say, whole } from '../chaos/command-line.ts';
import { migrate } from '../chaos/environment.ts';
import { startPostgresServer } from '../chaos/postgres-server.ts';
import { withRig } from '../chaos/rig.ts';
import { isNatsInstalled, startNatsCluster } from '../support/nats.ts';
import { repositoryRoot } from '../support/planted-copy.ts';
import type { FleetMode } from './gateways.ts';
import { describe, faultsOf, runFleet } from './run.ts';

const modes: readonly FleetMode[] = ['lease', 'jetstream'];
const { values } = parseArgs({
  options: {
    calls: { type: 'string', default: '20000' },
    runners: { type: 'string', default: '8' },
    concurrency: { type: 'string', default: '16' },
    only: { type: 'string' },
    kills: { type: 'string' },
    seed: { type: 'string', default: newSeed() },
  },
});

/** One fleet with a database of its own. False where something was wrong. */
function makeRun(mode: FleetMode, kills: boolean): Promise<boolean> {
  return withRig(async (rig) => {
    const postgres = await startPostgresServer(path.join(rig.dir, 'pg'));
    rig.defer(() => postgres.stop());
    await postgres.run('create database fleet');
    const databaseUrl = postgres.url('fleet');
    await migrate(repositoryRoot, databaseUrl);
    const nats = mode === 'jetstream' ? await startNatsCluster({ servers: 3 }) : undefined;
    rig.defer(() => nats?.stop());
    const report = await runFleet({
      rig,
      mode,
      databaseUrl,
      ...(nats && { nats }),
      runners: whole('runners', values.runners, 1, 100),
      calls: whole('calls', values.calls, 1, 1_000_000),
      concurrency: whole('concurrency', values.concurrency, 1, 1_000),
      kills,
      seed: values.seed,
      say,
    });
    say(describe(report));
    const faults = faultsOf({ ...report, kills });
    for (const fault of faults) say(`FAULT: ${fault}`);
    return faults.length === 0;
  });
}

await runCommand(async () => {
  say(`seed ${values.seed}`);
  const only = oneOf('only', values.only, modes);
  const kills = oneOf('kills', values.kills, ['yes', 'no']);
  let isSound = true;
  for (const mode of only ? [only] : modes)
    if (mode === 'jetstream' && !isNatsInstalled)
      say('jetstream: NOT CHECKED, nats-server NOT INSTALLED (apt-get install nats-server)');
    else
      for (const kill of kills ? [kills === 'yes'] : [false, true])
        isSound = (await makeRun(mode, kill)) && isSound;
  return isSound;
});
