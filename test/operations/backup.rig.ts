import { execFile } from 'node:child_process';
import { appendFileSync, chownSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import type pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { postgresAccount } from '../../src/devnet/postgres-account.ts';
import { migrate } from '../../src/ledger/store/migrations.ts';
import { passValidity } from '../finance/use-cases/recovery/support.ts';
import { childEnvironment } from '../support/child-environment.ts';
import { type TestDatabase, withClient } from '../support/database.ts';
import { useChain } from '../support/devnet.ts';
import { notChecked } from '../support/installed.ts';
import { configText, receiptKey, runnerSecret, startTestGateway } from '../support/gateway.ts';
import { testSeed, testSigner } from '../support/log.ts';
import { payFor } from '../support/payer.ts';
import { readPage } from '../support/pages.ts';
import { temporaryFolder, tollbook } from '../support/program.ts';
import { endOfPeriod } from '../support/reconcile.ts';
import { startTestRunner } from '../support/runner.ts';
import { eventually } from '../support/wait.ts';

const chain = useChain();
const job = '/x402/jobs/1/0';
const bin = '/usr/lib/postgresql/15/bin';
const absence = notChecked('BACKUP', existsSync(`${bin}/pg_basebackup`) ? [] : ['postgresql-15']);

const { blocks } = readPage('docs/operations/backup.md');
const blockWith = (word: string): string => {
  const found = blocks.find(({ text }) => text.includes(word));
  if (!found) throw new Error(`the page has no commands with ${word}`);
  return found.text;
};

/** A server of Debian's PostgreSQL with the page's settings and an archive, in a folder that stands for `/` of the page. */
async function startServer() {
  const root = temporaryFolder();
  const account = postgresAccount();
  for (const dir of ['var', 'var/lib', 'var/lib/postgresql', 'var/lib/postgresql/15', 'var/backups'])
    mkdirSync(path.join(root, dir));
  for (const dir of ['run', 'var/lib/postgresql/15', 'var/backups/ledger', 'var/backups/ledger/wal']) {
    mkdirSync(path.join(root, dir), { recursive: true });
    if (account) chownSync(path.join(root, dir), account.uid, account.gid);
  }
  const socketDir = path.join(root, 'run');
  const placed = (text: string): string => text.replaceAll('/var/', `${root}/var/`);
  /** Runs commands of the page as the server's user, with its paths below the folder. */
  const run = async (commands: string): Promise<string> => {
    const env = { ...childEnvironment(), PGHOST: socketDir, PGUSER: 'postgres', HOME: socketDir };
    const script = `set -e\n${placed(commands)}`;
    const { stdout } = await promisify(execFile)('bash', ['-c', script], { ...account, env, cwd: socketDir });
    return stdout;
  };
  const main = '/var/lib/postgresql/15/main';
  await run(`${bin}/initdb --pgdata=${main} --auth=trust --username=postgres --encoding=UTF8 --no-sync`);
  const settings = `listen_addresses = ''\nunix_socket_directories = '${socketDir}'\nfsync = off\n`;
  appendFileSync(placed(`${main}/postgresql.conf`), settings + placed(blockWith('archive_command')));
  const stop = (name: string) =>
    run(`${bin}/pg_ctl --pgdata=/var/lib/postgresql/15/${name} --mode=fast --wait stop || true`);
  onTestFinished(async () => void (await Promise.all([stop('main'), stop('copy')])));
  await run(`${bin}/pg_ctl --pgdata=${main} --log=${main}/log --wait start`);
  const host = encodeURIComponent(socketDir);
  const url = (port: number, database = 'ledger', user = 'gateway'): string =>
    `postgresql://${user}@/${database}?host=${host}&port=${port}`;
  await ask(url(5432, 'postgres', 'postgres'), 'create role gateway login createrole');
  await ask(url(5432, 'postgres', 'postgres'), 'create database ledger owner gateway');
  await migrate(url(5432));
  return { url, run, stop };
}

async function ask<Row extends pg.QueryResultRow>(url: string, text: string): Promise<Row[]> {
  return withClient(url, async (client) => (await client.query<Row>(text)).rows);
}

test.skipIf(absence !== '')(
  `a database that was restored to a moment, and one from a dump, are quiet; payments after that moment are found, and each goes live${absence}`,
  async () => {
    const { url, run, stop } = await startServer();
    const runner = await startTestRunner(() => ({ status: 200, body: 'done' }));
    const env = { LOG_KEY: testSeed.toString('hex') };
    const tables = `[log]\norigin = "${testSigner.name}"\nkey = "env:LOG_KEY"
[[log.anchors]]\nkind = "folder"\nlocation = "${temporaryFolder()}"\nevery_ms = 20`;
    const gatewayOn = (databaseUrl: string) =>
      startTestGateway({
        database: { url: databaseUrl } as TestDatabase,
        chain,
        runnerUrl: runner.url,
        tables,
        env,
      });
    const config = path.join(temporaryFolder(), 'gateway.toml');
    writeFileSync(config, configText({ database: {} as TestDatabase, chain, runnerUrl: runner.url, tables }));
    const command = (databaseUrl: string, ...args: string[]) =>
      tollbook(args, {
        ...env,
        RUNNER_TOKEN: runnerSecret,
        RECEIPT_KEY: receiptKey,
        DATABASE_URL: databaseUrl,
      });
    const goLive = (databaseUrl: string) =>
      command(databaseUrl, 'go-live', '--config', config, '--by', 'ada', '--why', 'a rehearsal');

    const first = await gatewayOn(url(5432));
    await run(blockWith('pg_basebackup'));
    const kept = await payFor(first, job);
    const admin = url(5432, 'ledger', 'postgres');
    const [moment] = await ask<{ at: string }>(admin, 'select clock_timestamp()::text as at');
    await payFor(first, job);
    await first.stop();
    await endOfPeriod(chain.rpcUrl);
    const [last] = await ask<{ file: string }>(
      admin,
      'select pg_walfile_name(pg_current_wal_lsn()) as file, pg_switch_wal()',
    );
    await eventually(async () => {
      const [row] = await ask<{ done: boolean }>(
        admin,
        `select last_archived_wal >= '${last?.file}' as done from pg_stat_archiver`,
      );
      expect(row?.done).toBe(true);
    });
    await run(blockWith('pg_dump'));
    await stop('main');
    await run(blockWith('recovery_target_time').replace(/2026-\S+ [\d:]+\+00/, moment?.at ?? ''));

    const copy = await gatewayOn(url(5433));
    expect(copy.quiet?.reason).toMatch(/timeline 2, and on record is .*timeline 1: .* events are missing/);
    const receipt = { status: 200, json: { paid: true } };
    expect(await copy.get(`/x402/receipts/${kept.json.quote_digest}`)).toMatchObject(receipt);
    expect(await command(url(5433), 'verify', '--pubkey', testSigner.verifierKeys[0])).toMatchObject({
      code: 0,
    });
    const refused = {
      code: 2,
      stderr: expect.stringMatching(/are missing: nothing was changed.*`tollbook recover/),
    };
    expect(await goLive(url(5433))).toMatchObject(refused);
    await passValidity(chain);
    expect(await command(url(5433), 'recover', '--config', config, '--by', 'ada')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/Refund due: 3\.264000 USDC.*\n1 payments were found/),
    });
    await copy.quiet?.over;
    await copy.stop();
    const live = await gatewayOn(url(5433));
    expect(live.quiet).toBeUndefined();
    await live.stop();
    await stop('copy');

    // the dump, on the first server again: whole, but the ledger was recovered elsewhere meanwhile
    await run(
      `${bin}/pg_ctl --pgdata=/var/lib/postgresql/15/main --log=/var/lib/postgresql/15/main/log --wait start`,
    );
    const restored = url(5432, 'ledger_copy');
    await migrate(restored);
    const fromDump = await gatewayOn(restored);
    expect(fromDump.quiet?.reason).toMatch(/this is a copy, or the ledger was moved/);
    await fromDump.stop();
    expect(await goLive(restored)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/recovered into another database/),
    });
    writeFileSync(config, configText({ database: {} as TestDatabase, chain, runnerUrl: runner.url }));
    expect(await goLive(restored)).toMatchObject({ code: 0 });
    expect(await ask(restored, 'select 1 from tollbook.database_identity')).toHaveLength(1);
  },
);
