import { chownSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../../../src/devnet/postgres.ts';
import { openDatabase } from '../../../../src/ledger/store/database.ts';
import { migrate } from '../../../../src/ledger/store/migrations.ts';
import { startBooks } from '../../../support/books.ts';
import type { TestDatabase } from '../../../support/database.ts';
import { allEvents } from '../../../support/invariants.ts';
import { folderTable } from '../../../support/log.ts';
import { temporaryFolder } from '../../../support/program.ts';
import { eventually } from '../../../support/wait.ts';

/** Its own server, which can become another timeline at the same address, as a failover does behind a proxy. */
async function startServer() {
  const dir = path.join(temporaryFolder(), 'pg');
  const start = () => startEmbeddedPostgres({ dir, durable: false });
  let server: EmbeddedPostgres = await start();
  onTestFinished(() => server.stop());
  const url = server.url();
  await migrate(url);
  return {
    url,
    async failOver() {
      await server.stop();
      const signal = path.join(dir, 'data', 'standby.signal');
      writeFileSync(signal, '');
      const { uid, gid } = statSync(path.join(dir, 'data'));
      chownSync(signal, uid, gid);
      const started = start();
      await eventually(async () => {
        const client = new pg.Client(url);
        await client.connect();
        try {
          await client.query('select pg_promote(true, 60)');
        } finally {
          await client.end();
        }
      });
      server = await started;
    },
  };
}

test('a failover under a running gateway makes no gateway quiet; after one that no gateway saw, an anchor must prove that nothing is missing', async () => {
  const { url, failOver } = await startServer();
  const database = { url } as TestDatabase;
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  pool.on('error', () => {});
  onTestFinished(() => pool.end());
  const continuations = async () =>
    (await allEvents(openDatabase(pool))).flatMap(({ type, data }) =>
      type === 'database_continued' ? [[data.proven_by, data.database.timeline]] : [],
    );
  const tables = folderTable(temporaryFolder());
  const first = await startBooks(database, { tables });
  await failOver();
  const second = await startBooks(database);
  expect(second.quiet).toBeUndefined();
  expect(await continuations()).toEqual([['running_gateway', 2]]);
  await Promise.all([first.stop(), second.stop()]);

  await failOver();
  const unproven = await startBooks(database);
  expect(unproven.quiet?.reason).toMatch(
    /timeline 3, and on record is .*timeline 2: nothing proves .*no anchor/,
  );
  const proven = await startBooks(database, { tables });
  expect(proven.quiet).toBeUndefined();
  expect(await continuations()).toEqual([
    ['running_gateway', 2],
    ['anchor', 3],
  ]);
  await unproven.quiet?.over;
});
