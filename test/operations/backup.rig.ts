import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { postgresAccount } from '../../src/devnet/postgres-account.ts';
import { freePort } from '../../src/devnet/ports.ts';
import { migrate } from '../../src/ledger/store/migrations.ts';
import { passValidity } from '../finance/use-cases/recovery/support.ts';
import { archived, ask, idleMoment } from '../support/archive.ts';
import { childEnvironment } from '../support/child-environment.ts';
import type { TestDatabase } from '../support/database.ts';
import { useChain } from '../support/devnet.ts';
import { notChecked } from '../support/installed.ts';
import { configText, receiptKey, runnerSecret, startTestGateway } from '../support/gateway.ts';
import { testSeed, testSigner } from '../support/log.ts';
import { payFor } from '../support/payer.ts';
import { readPage } from '../support/pages.ts';
import { temporaryFolder, tollbook } from '../support/program.ts';
import { endOfPeriod } from '../support/reconcile.ts';
import { startTestRunner } from '../support/runner.ts';
import { timeLimits } from '../support/time-limits.ts';

const chain = useChain();
const job = '/x402/jobs/1/0';
const programs = ['/usr/lib/postgresql/15/bin/postgres', '/usr/bin/pg_restorecluster'];
const absence =
  process.getuid?.() === 0
    ? notChecked('BACKUP', programs.every((file) => existsSync(file)) ? [] : ['postgresql-15'])
    : notChecked('BACKUP', ['root'], 'DOES NOT RUN THE TESTS');

const page = readPage('docs/operations/backup.md');
const blockWith = (word: string): string => {
  const found = page.blocks.find(({ text }) => text.includes(word));
  if (!found) throw new Error(`the page has no commands with ${word}`);
  return found.text;
};
/** A command within a sentence of the page. */
const inlineCommand = (start: string): string => {
  const [, command = ''] = new RegExp(`\`(${start}[^\`]*)\``).exec(page.text) ?? [];
  if (command === '') throw new Error(`the page has no command ${start}`);
  return command;
};

/**
 * A cluster of Debian's packages for the page's `15 main`, with the page's archive and an empty ledger. Its name, that of its copy
 * and both ports are this test's own, so that the page's commands reach no other cluster of the machine. When the test ends, both
 * clusters and their backups are removed.
 */
async function startOriginal() {
  const id = `tollbook_rig_${randomBytes(4).toString('hex')}`;
  const names = { main: id, restored: `${id}_restored` };
  const ports = { main: await freePort(), restored: await freePort() };
  const placed = (text: string): string => {
    const ours = text
      .replaceAll(/\b15([ /-])main\b/g, `15$1${names.main}`)
      .replaceAll(/\b15([ /-])restored\b/g, `15$1${names.restored}`)
      .replaceAll(/\b5432\b/g, String(ports.main))
      .replaceAll(/\b5433\b/g, String(ports.restored))
      .replaceAll('/ledger.dump', `/15-${id}/ledger.dump`);
    // root runs them: they must not reach a cluster that someone else made
    if (/\b(?:main|restored)\b/.test(ours)) throw new Error(`these name a cluster in another way:\n${ours}`);
    return ours;
  };
  // as root's home: the server's user cannot enter it
  const home = mkdtempSync(path.join(tmpdir(), 'tollbook-root-'));
  onTestFinished(() => rmSync(home, { recursive: true }));
  chmodSync(home, 0o700);
  /** Runs commands of the page in one shell of root, or of the server's user. The shell ends at the first that fails. */
  const run = async (commands: string, user: 'root' | 'postgres' = 'root'): Promise<string> => {
    const env = { ...childEnvironment(), HOME: home };
    const timeout = timeLimits.testMs;
    const options =
      user === 'root'
        ? { cwd: home, env, timeout }
        : { ...postgresAccount(), cwd: '/', timeout, env: { ...env, PGCLUSTER: `15/${id}` } };
    const { stdout } = await promisify(execFile)('bash', ['-c', `set -e\n${placed(commands)}`], options);
    return stdout;
  };
  /** What there is of a cluster, whole or not. */
  const remove = async (name: string): Promise<void> => {
    if (existsSync(`/etc/postgresql/15/${name}/postgresql.conf`))
      await run(`pg_dropcluster --stop 15 ${name}`);
    for (const place of ['/etc/postgresql/15/', '/var/lib/postgresql/15/', '/var/backups/postgresql/15-'])
      rmSync(`${place}${name}`, { recursive: true, force: true });
  };
  const hadBackups = existsSync('/var/backups/postgresql');
  onTestFinished(async () => {
    const outcomes = await Promise.allSettled(Object.values(names).map(remove));
    if (!hadBackups && existsSync('/var/backups/postgresql')) rmdirSync('/var/backups/postgresql');
    expect(outcomes.filter(({ status }) => status === 'rejected')).toEqual([]);
  });
  await run('pg_createcluster --port=5432 --start-conf=manual 15 main');
  // a backup's checkpoint takes minutes by default; a copy must have as many connections as the original
  for (const setting of ['fsync off', 'checkpoint_completion_target 0', 'max_connections 120'])
    await run(`pg_conftool 15 main set ${setting}`);
  await run('pg_ctlcluster 15 main start');
  await run(blockWith('archive_command'));
  await run(
    `psql -c "create role gateway login createrole password 'SECRET'" -c "create role admin login superuser password 'SECRET'" -c 'create database ledger owner gateway'`,
    'postgres',
  );
  const url = (name: 'main' | 'restored', database = 'ledger', user = 'gateway'): string =>
    `postgresql://${user}:SECRET@127.0.0.1:${ports[name]}/${database}`;
  await migrate(url('main'));
  const admin = url('main', 'ledger', 'admin');
  // what a copy would inherit: settings that name the original, and the file that makes a server a standby of it
  await ask(admin, `alter system set port = ${ports.main}`);
  await ask(admin, `alter system set primary_conninfo = 'host=/var/run/postgresql port=${ports.main}'`);
  const standbySignal = `/var/lib/postgresql/15/${id}/standby.signal`;
  writeFileSync(standbySignal, '');
  const archive = (name: 'main' | 'restored') => readdirSync(`/var/backups/postgresql/15-${names[name]}/wal`);
  return { url, run, placed, admin, archive, standbySignal };
}

/** What tells one server from another, and from itself after a restart. */
async function serverOf(admin: string) {
  const [row] = await ask<{ directory: string; started: string; id: string }>(
    admin,
    `select current_setting('data_directory') as directory, pg_postmaster_start_time()::text as started,
     system_identifier::text as id from pg_control_system()`,
  );
  if (!row) throw new Error('no row');
  return row;
}

async function eventsOf(url: string): Promise<number> {
  const [row] = await ask<{ count: number }>(url, 'select count(*)::int as count from tollbook.event');
  return row?.count ?? 0;
}

test.skipIf(absence !== '')(
  `a database that was restored beside the running original, to the end or to a moment, and one from a dump, are quiet; payments after that moment are found, and each goes live${absence}`,
  async () => {
    const { url, run, placed, admin, archive, standbySignal } = await startOriginal();
    const runner = await startTestRunner(() => ({ status: 200, body: 'done' }));
    const env = { LOG_KEY: testSeed.toString('hex') };
    const tables = `[log]\norigin = "${testSigner.name}"\nkey = "env:LOG_KEY"
[[log.anchors]]\nkind = "folder"\nlocation = "${temporaryFolder()}"\nevery_ms = 20`;
    const gatewayOn = (databaseUrl: string, quiet = false) =>
      startTestGateway({
        database: { url: databaseUrl } as TestDatabase,
        chain,
        runnerUrl: runner.url,
        tables,
        env,
        quiet,
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
    const verify = () => command(url('restored'), 'verify', '--pubkey', testSigner.verifierKeys[0] ?? '');

    const first = await gatewayOn(url('main'));
    await run(blockWith('expirebasebackups'));
    rmSync(standbySignal);
    const backup = (await run('ls -d /var/backups/postgresql/15-main/*.backup')).trim();
    const kept = await payFor(first, job);
    const moment = await idleMoment(admin);
    await archived(admin);
    await payFor(first, job);
    const original = await serverOf(admin);

    const [, before = '', after = ''] =
      /Start the copy only if.*\n```text\n([^]*?)```[^]*?```text\n([^]*?)```/.exec(page.text) ?? [];
    const started = placed(after).replaceAll(/\d{19}/g, original.id);
    /** Restores by the page's commands. What they print before and after the start of the copy is what the page shows. */
    const restore = async (change: (commands: string) => string) => {
      const commands = blockWith('pg_restorecluster').replace(/backup=.*/, `backup=${backup}`);
      const printed = await run(change(commands));
      expect(printed.slice(-placed(before).length)).toBe(placed(before));
      expect(await run(blockWith('pg_is_in_recovery'))).toBe(started);
    };

    // everything, with what is not archived
    const end = await idleMoment(admin);
    await restore(
      (commands) => `${commands.replace(/--pitr='[^']*'/, '--archive')}\n${inlineCommand('cp -a')}`,
    );
    expect(await eventsOf(url('restored'))).toBe(end.events);
    const whole = await gatewayOn(url('restored'), true);
    expect(whole.quiet?.reason).toBe('it was started so');
    expect(await verify()).toMatchObject({ code: 0 });
    await payFor(first, job);
    await whole.stop();
    expect(await eventsOf(url('restored'))).toBe(end.events);
    await run(inlineCommand('pg_dropcluster'));

    // to the moment
    await archived(admin);
    await restore((commands) => commands.replace(/2026-\S+ [\d:]+\+00/, moment.at));
    expect(await eventsOf(url('restored'))).toBe(moment.events);
    await payFor(first, job);
    const copy = await gatewayOn(url('restored'));
    expect(copy.quiet?.reason).toMatch(/timeline 2, and on record is .*timeline 1: .* events are missing/);
    const receipt = { status: 200, json: { paid: true } };
    expect(await copy.get(`/x402/receipts/${kept.json.quote_digest}`)).toMatchObject(receipt);
    expect(await verify()).toMatchObject({ code: 0 });
    const refused = {
      code: 2,
      stderr: expect.stringMatching(/are missing: nothing was changed.*`tollbook recover/),
    };
    expect(await goLive(url('restored'))).toMatchObject(refused);
    expect(await eventsOf(url('restored'))).toBe(moment.events);
    expect(await serverOf(admin)).toEqual(original);
    expect(archive('main').filter((file) => !file.startsWith('00000001'))).toEqual([]);

    // the copy becomes the ledger
    await first.stop();
    await run(blockWith('pg_dump'), 'postgres');
    await endOfPeriod(chain.rpcUrl);
    await run(blockWith('start.conf'));
    await expect(run('pg_ctlcluster 15 main start')).rejects.toThrow(/disabled/);
    await passValidity(chain);
    expect(await command(url('restored'), 'recover', '--config', config, '--by', 'ada')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/Refund due: 3\.264000 USDC.*\n3 payments were found/),
    });
    await copy.quiet?.over;
    await copy.stop();
    const live = await gatewayOn(url('restored'));
    expect(live.quiet).toBeUndefined();
    await live.stop();
    await run(inlineCommand('pg_backupcluster 15 restored'));
    await archived(url('restored', 'ledger', 'admin'));
    expect(archive('restored').filter((file) => file.startsWith('00000002'))).not.toEqual([]);
    expect(archive('main').filter((file) => !file.startsWith('00000001'))).toEqual([]);

    // the dump, on the first server again: whole, but the ledger was recovered elsewhere meanwhile
    await run('echo manual > /etc/postgresql/15/main/start.conf; pg_ctlcluster 15 main start');
    const restored = url('main', 'ledger_copy');
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
