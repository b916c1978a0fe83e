/** `npm run fleet`: docs/scale.md has what it measured. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { startEmbeddedPostgres } from '../../src/devnet/postgres.ts';
import { migrate } from '../../src/ledger/store/migrations.ts';
import { isNatsInstalled, startNatsCluster } from '../support/nats.ts';
import type { FleetMode } from './gateways.ts';
import { describe, faultsOf, runFleet } from './run.ts';

const { values } = parseArgs({
  options: {
    calls: { type: 'string', default: '20000' },
    runners: { type: 'string', default: '8' },
    concurrency: { type: 'string', default: '16' },
    only: { type: 'string' },
    kills: { type: 'string' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});
const say = (line: string): void => console.log(line);
const dir = mkdtempSync(path.join(tmpdir(), 'tollbook-fleet-'));
const postgres = await startEmbeddedPostgres({ dir, durable: true });
const modes: readonly FleetMode[] = ['lease', 'jetstream'];
let runCount = 0;
try {
  say(`seed ${values.seed}`);
  for (const mode of modes.filter((one) => values.only === undefined || one === values.only)) {
    if (mode === 'jetstream' && !isNatsInstalled) {
      say('jetstream: NOT CHECKED, nats-server NOT INSTALLED (apt-get install nats-server)');
      continue;
    }
    for (const kills of values.kills === undefined ? [false, true] : [values.kills === 'yes']) {
      const name = `fleet${++runCount}`;
      const admin = new pg.Client(postgres.url());
      await admin.connect();
      await admin.query(`create database ${name}`);
      await admin.end();
      await migrate(postgres.url(name));
      const nats = mode === 'jetstream' ? await startNatsCluster({ servers: 3 }) : undefined;
      try {
        const report = await runFleet({
          mode,
          databaseUrl: postgres.url(name),
          ...(nats && { nats }),
          runners: Number(values.runners),
          calls: Number(values.calls),
          concurrency: Number(values.concurrency),
          kills,
          seed: values.seed,
          say,
        });
        say(describe(report));
        const faults = faultsOf({ ...report, kills });
        for (const fault of faults) say(`FAULT: ${fault}`);
        if (faults.length > 0) process.exitCode = 1;
      } finally {
        await nats?.stop();
      }
    }
  }
} finally {
  await postgres.stop();
  rmSync(dir, { recursive: true, force: true });
}
