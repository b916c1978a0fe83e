import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, renameSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { createRandom } from '../chaos/random.ts';
import { withRig } from '../chaos/rig.ts';
import { ask } from '../chaos/sql.ts';
import { archived, idleMoment } from '../support/archive.ts';
import { childEnvironment } from '../support/child-environment.ts';
import type { TestDatabase } from '../support/database.ts';
import { useChain } from '../support/devnet.ts';
import { startTestGateway } from '../support/gateway.ts';
import { notChecked } from '../support/installed.ts';
import { readPage } from '../support/pages.ts';
import { payFor } from '../support/payer.ts';
import { tollbook } from '../support/program.ts';
import { startTestRunner } from '../support/runner.ts';
import { timeLimits } from '../support/time-limits.ts';
import { eventually } from '../support/wait.ts';
import { startCluster } from './cluster.ts';
import { missing } from './installed.ts';
import { createLedger, differencesOfNodes, ledgerUrl } from './ledger.ts';

const chain = useChain();
const unmet = [...missing, ...(process.getuid?.() === 0 ? [] : ['root'])];
const absence = notChecked('A RESTORED CLUSTER OF PATRONI', unmet);
const { blocks } = readPage('docs/operations/high-availability.md');
const blockWith = (word: string): string => blocks.find(({ text }) => text.includes(word))?.text ?? '';

test.skipIf(unmet.length > 0)(
  `a cluster of Patroni that was restored to a moment by the page’s commands has on all nodes the events until then, and its gateways are quiet${absence}`,
  () =>
    withRig(async (rig) => {
      const cluster = await startCluster(rig, 1, createRandom(String(Date.now())), undefined);
      await cluster.untilWhole(timeLimits.testMs);
      const [primary = ''] = cluster.primaries;
      const [proxyHost = ''] = primary.split(':');
      await createLedger(primary);
      const admin = ledgerUrl(primary, 'postgres');
      const backups = path.join(rig.dir, 'backups');
      mkdirSync(backups);
      chmodSync(backups, 0o777);
      const [first] = cluster.nodes;
      if (!first) throw new Error('no node');
      const run = async (commands: string): Promise<void> => {
        const here = first
          .placed(commands.replaceAll('/var/backups/ledger', '@BACKUPS'))
          .replaceAll('@BACKUPS', `${backups}/ledger`)
          .replaceAll('host=127.0.0.1', `host=${proxyHost}`);
        const env = { ...childEnvironment(), LC_ALL: 'C.UTF-8' };
        await promisify(execFile)('bash', ['-c', `set -e\n${here}`], {
          cwd: '/',
          env,
          timeout: timeLimits.testMs,
        });
      };
      await run(blockWith('archive_command'));
      await cluster.untilWhole(timeLimits.testMs);
      await run(blockWith('pg_basebackup'));

      const runner = await startTestRunner(() => ({ status: 200, body: 'done' }));
      const start = () =>
        startTestGateway({
          database: { url: ledgerUrl(primary) } as TestDatabase,
          chain,
          runnerUrl: runner.url,
        });
      const gateway = await start();
      await payFor(gateway, '/x402/jobs/1/0');
      const moment = await idleMoment(admin);
      await payFor(gateway, '/x402/jobs/1/0');
      await archived(admin);
      await gateway.stop();

      for (const node of cluster.nodes) await node.halt();
      await run(blockWith('recovery_target_time').replace(/2026-11-20 [\d:]+\+00/, moment.at));
      await first.start();
      // a node without data that finds no leader would make an empty cluster
      await eventually(async () => expect(await first.answers('/primary')).toBe(true));
      for (const node of cluster.nodes.slice(1)) {
        const data = node.placed('/var/lib/postgresql/15/ledger');
        renameSync(data, `${data}.before`);
        await node.start();
      }
      await cluster.untilWhole(timeLimits.testMs);
      expect(await first.answers('/primary')).toBe(true);
      const [row] = await ask<{ events: number }>(
        ledgerUrl(primary),
        'select count(*)::int as events from tollbook.event',
        timeLimits.testMs,
      );
      expect(row?.events).toBe(moment.events);
      expect(await differencesOfNodes(cluster, timeLimits.testMs)).toEqual([]);
      const env = { DATABASE_URL: ledgerUrl(primary) };
      expect(await tollbook(['verify'], env)).toMatchObject({ code: 0 });
      const copy = await start();
      expect(copy.quiet?.reason).toMatch(/timeline/);
      await copy.stop();
    }),
);
