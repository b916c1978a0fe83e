import { chmodSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { says, useDoctor } from '../../support/doctor.ts';
import { runnerSecret } from '../../support/gateway.ts';
import { temporaryFolder, tollbook } from '../../support/program.ts';

const { chain, peer, urlFor, admin, doctor, faults, copyLedger } = useDoctor();

const misspelled = (text: string) => text.replace('markup_bps = 200', 'markup_bp = 200');

test('everything that a sound gateway needs is found well, and the exit code is 0', async () => {
  const { code, stdout, stderr, file } = await doctor();
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const { host } = new URL(chain.rpcUrl);
  const facilitator = new URL(chain.facilitatorUrl).host;
  expect(stdout.replaceAll(/\d+(?= of \d+ s ago)|\d+(?= s ago)/g, 'N').split('\n')).toEqual([
    `ok    configuration: ${file} is valid`,
    expect.stringMatching(/^ok {4}database: PostgreSQL 1[5-8]\S* at \/\S+, database ledger$/),
    'ok    database sessions: keep the settings that the ledger relies on, such as synchronous_commit = on',
    'ok    database connections: at most 200: a gateway takes 25',
    'ok    database durability: a commit is on the disk before its answer',
    'ok    database migrations: all applied',
    'ok    database rights: the user gateway works as tollbook_writer_ledger, which cannot change events',
    "ok    clock: the database's and this machine's agree within 2 seconds",
    `ok    facilitator: ${facilitator} settles every accepted token`,
    `ok    network eip155:84532: ${host} serves it, with block N of N s ago`,
    'ok    tokens and contracts: the chains say the same as the configuration',
    `ok    runner runner-1: ${peer()} is reachable`,
    `ok    alert receiver: ${peer()} is reachable`,
    'ok    anchors: checkpoints go to anchor-1',
    '',
  ]);
});

test('each fault has a line, below it what repairs it, and the exit code is 1', async () => {
  const { code, stdout, stderr } = await doctor({ runnerUrl: 'http://127.0.0.1:1' });
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: '1 check failed: do what the line below each says, then run `tollbook doctor` again\n',
  });
  expect(stdout).toContain(`
fail  runner runner-1: http://127.0.0.1:1 cannot be reached (ECONNREFUSED)
      Start it, let this machine reach it, or correct runners[0].url.
`);
});

test('a database that is away is one fault of many, and its password is not shown', async () => {
  const env = { DATABASE_URL: 'postgres://user:hunter2@127.0.0.1:1/none' };
  const { code, stdout } = await doctor({ env, runnerUrl: 'http://127.0.0.1:1' });
  expect(code).toBe(1);
  expect(stdout).toContain(
    '\nfail  database: The database at 127.0.0.1:1 cannot be used (ECONNREFUSED)\n' +
      '      Start it, let this machine reach it, or correct DATABASE_URL.\n',
  );
  expect(stdout).toContain('\nfail  runner runner-1: ');
  expect(stdout).not.toContain('hunter2');
  const plain = await faults({ env: { DATABASE_URL: 'postgres://user:hunter2@nowhere.invalid/none' } });
  expect(plain.faults).toEqual([
    says(
      'warn',
      'database encryption',
      /^DATABASE_URL: names another host without/,
      /^Add sslmode=verify-full .*\.$/,
    ),
    says('fail', 'database', /nowhere\.invalid/, /correct DATABASE_URL\.$/),
  ]);
  expect((await faults({ env: { DATABASE_URL: '' } })).faults).toEqual([
    says('fail', 'database', /^DATABASE_URL is not set$/, /^Set DATABASE_URL/),
  ]);
});

test('a session whose settings break the guarantees is a fault, and the repair names the setting and its user', async () => {
  await admin(`create role replica login; alter role replica set session_replication_role = replica`);
  expect(await faults({ env: { DATABASE_URL: urlFor('replica') } })).toEqual({
    code: 1,
    faults: [
      says(
        'fail',
        'database sessions',
        /session_replication_role has to be origin, and is replica$/,
        /alter role "replica" reset session_replication_role; alter database "ledger" reset/,
      ),
    ],
  });
});

test('a server that may lose acknowledged commits is a fault, and the repair names the setting to change', async () => {
  await admin('alter system set fsync = off');
  await admin('select pg_reload_conf()');
  onTestFinished(async () => {
    await admin('alter system reset fsync');
    await admin('select pg_reload_conf()');
  });
  await expect
    .poll(() => faults())
    .toEqual({
      code: 1,
      faults: [
        says('fail', 'database durability', /lose acknowledged payments: off is fsync$/, /fsync = on/),
      ],
    });
});

test('the rights of the user are checked: one that may not write fails, one that owns the ledger is a warning', async () => {
  await admin('create role stranger login; grant usage on schema tollbook to stranger', 'ledger');
  expect(await faults({ env: { DATABASE_URL: urlFor('stranger') } })).toEqual({
    code: 1,
    faults: [
      says(
        'fail',
        'database rights',
        /^the user stranger may not write/,
        /grant the writer role to stranger/,
      ),
    ],
  });
  const owner = await faults({ env: { DATABASE_URL: urlFor('postgres') } });
  expect({ ...owner, faults: owner.faults.filter(({ check }) => check !== 'disk') }).toEqual({
    code: 0,
    faults: [says('warn', 'database rights', /^the user postgres owns the ledger/, /create-database\.sql/)],
  });
});

test('the free space of a database on this machine is told to a superuser', async () => {
  const { stdout } = await doctor({ env: { DATABASE_URL: urlFor('postgres') } });
  expect(stdout).toMatch(/^(?:ok|warn|fail) +disk: \d+\.\d GiB free of \d+\.\d at \/\S+$/m);
});

test('missing migrations are named with the command that runs them', async () => {
  const copy = await copyLedger();
  // the first one: a gateway starts without those that run outside a transaction
  await admin('delete from tollbook.migration where name = (select min(name) from tollbook.migration)', copy);
  expect(await faults({ env: { DATABASE_URL: urlFor('gateway', copy) } })).toEqual({
    code: 1,
    faults: [says('fail', 'database migrations', /^1 file of this version/, /Run `tollbook migrate`/)],
  });
  await admin(`insert into tollbook.migration values ('9999-later', now())`, copy);
  expect((await faults({ env: { DATABASE_URL: urlFor('gateway', copy) } })).faults).toEqual([
    says('fail', 'database migrations', /newer than this program.*9999-later$/, /^Use the version/),
  ]);
});

test.each([
  [3, 'warn', 0, /^the database's is \d\.\d s ahead of this machine's$/],
  [-600, 'fail', 1, /^the database's is \d+\.\d s behind this machine's$/],
] as const)('a clock that is %d seconds ahead is told as %s', async (secs, status, code, found) => {
  const copy = await copyLedger();
  await admin(
    `create or replace function tollbook.clock() returns timestamptz language sql volatile
     as $$ select clock_timestamp() + interval '${secs} seconds' $$`,
    copy,
  );
  expect(await faults({ env: { DATABASE_URL: urlFor('gateway', copy) } })).toEqual({
    code,
    faults: [says(status, 'clock', found, /^Run NTP/)],
  });
});

test('no receiver of alerts, no anchor, and a secret that everyone can read are warnings', async () => {
  const secret = path.join(temporaryFolder(), 'runner.token');
  writeFileSync(secret, runnerSecret);
  chmodSync(secret, 0o644);
  const change = (text: string) =>
    text
      .replace(/^webhook = .*$/m, '')
      .replace(/^\[\[log\.anchors\]\]\n.*\n.*$/m, '')
      .replace('token = "env:RUNNER_TOKEN"', `token = "file:${secret}"`);
  expect(await faults({ change })).toEqual({
    code: 0,
    faults: [
      says('warn', 'secret files', /every user of this machine can read .*runner\.token$/, /^Run chmod o= /),
      says('warn', 'alerts', /no receiver gets alerts of faults/, /Name a receiver in \[alerts\]/),
      says('warn', 'anchors', /lost events/, /\[\[log\.anchors\]\]/),
    ],
  });
  chmodSync(secret, 0o600);
  expect((await faults({ change })).faults.map(({ check }) => check)).toEqual(['alerts', 'anchors']);
});

test('mistakes in the configuration are faults with key and line, and the database is checked all the same', async () => {
  const env = { DATABASE_URL: 'postgres://user@127.0.0.1:1/none' };
  expect(await faults({ change: misspelled, env })).toEqual({
    code: 1,
    faults: [
      says('fail', 'configuration', /^markup_bp .*markup_bps/, /^Correct markup_bp in \S+gateway\.toml:\d+ /),
      says('warn', 'everything that depends on it', /^is not checked$/, /^Correct the configuration/),
      says('fail', 'database', /ECONNREFUSED/, /correct DATABASE_URL/),
    ],
  });
});

test('warnings of the configuration are warnings, and a file that cannot be read is wrong use', async () => {
  const { code, faults: found } = await faults({ change: (text) => text.replace(/^quote_key.*$/m, '') });
  expect({ code, found }).toEqual({
    code: 0,
    found: [says('warn', 'configuration', /quote_key: is missing/, /configuration-reference/)],
  });
  for (const args of [[], ['--config', 'absent.toml'], ['--config', 'docs']])
    expect(await tollbook(['doctor', ...args])).toMatchObject({ code: 2, stdout: '' });
});
