import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, inject, onTestFinished, test } from 'vitest';
import { processEnvironment } from '../../src/base/config/environment.ts';
import type { Hex } from '../../src/base/values/primitives.ts';
import { payForOneJob } from '../../src/devnet/client.ts';
import { freePort } from '../../src/devnet/ports.ts';
import { withClient } from '../support/database.ts';
import { endProcessesAround } from '../support/processes.ts';
import { destroy, type Program, spawnTollbook, temporaryFolder, tollbook } from '../support/program.ts';
import { dumpSchema } from '../support/schema-dump.ts';
import { checkOut, type Version, versionsSince, whyNoHistory } from '../support/versions.ts';
import { eventually } from '../support/wait.ts';

/** From here on this version reads the events of each version; the one before has the same names of migrations. */
const firstRead = '216cd6db';
const history = whyNoHistory();
const absence = history === undefined ? '' : `: NOT CHECKED, ${history}`;
if (absence !== '') process.stderr.write(`\n*** UPGRADES${absence}\n\n`);
/** UPGRADE_SOURCES: how many commits, besides the tags. */
const sources =
  absence === '' ? versionsSince(firstRead, Number(processEnvironment()['UPGRADE_SOURCES'] ?? 3)) : ['none'];

const numbered = readdirSync('migrations').flatMap((file) => /^(\d+-.*)\.sql$/.exec(file)?.[1] ?? []);

/** The same text however the columns of a table are ordered, and whatever its database's roles are named. */
const comparable = (schema: string): string[] =>
  schema
    .replaceAll(/tollbook_(writer|reader)_\w+/g, 'tollbook_$1')
    .split('\n')
    .map((line) => line.replace(/,$/, ''))
    .toSorted();

const schemaOf = async (url: string) => comparable(await withClient(url, dumpSchema));

const here: Pick<Version, 'spawn'> = { spawn: spawnTollbook };

/** `tollbook start` of a version in a folder. */
function start(version: Pick<Version, 'spawn'>, dir: string, port: number): Program {
  const program = version.spawn(['start', '--dir', dir, '--port', String(port)]);
  onTestFinished(async () => {
    await destroy(program);
    await endProcessesAround(dir);
  });
  return program;
}

async function stop(program: Program): Promise<void> {
  program.kill('SIGINT');
  expect(await program.ended).toMatchObject({ code: 0 });
}

/** What `tollbook start` writes about itself, as far as each version does. */
interface Lived {
  readonly gateway_url: string;
  readonly database_url: string;
  readonly payer_private_key: string;
  readonly runner_token: string;
  readonly routing: { readonly api_key_funded: string; readonly paid_model: string };
}

const readLived = (dir: string) => JSON.parse(readFileSync(path.join(dir, 'devnet.json'), 'utf8')) as Lived;

const pay = (devnet: Lived, serviceId: number, onStep?: (step: string) => void) =>
  payForOneJob({
    gatewayUrl: devnet.gateway_url,
    privateKey: devnet.payer_private_key as Hex,
    serviceId,
    jobIndex: 0,
    body: 'hello',
    ...(onStep && { onStep }),
  });

/** A payment for a job that no runner takes yet. Returns the digest of its quote. */
function payForLater(devnet: Lived): Promise<string> {
  return new Promise((resolve, reject) => {
    const note = (step: string): void => {
      const [, digest] = /^call \d+, receipt (0x\w+)$/.exec(step) ?? [];
      if (digest !== undefined) resolve(digest);
    };
    pay(devnet, 2, note).catch(reject);
  });
}

async function post(address: string, bearer: string, body: object): Promise<unknown> {
  const headers = { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' };
  const response = await fetch(address, { method: 'POST', headers, body: JSON.stringify(body) });
  expect([response.status, address]).toEqual([200, address]);
  return response.json();
}

/** A completion that an account's credit pays. */
const complete = ({ gateway_url: url, routing }: Lived) =>
  post(`${url}/v1/chat/completions`, routing.api_key_funded, {
    model: routing.paid_model,
    messages: [{ role: 'user', content: 'hello' }],
  });

/** A runner takes the waiting call and completes it. */
async function work({ gateway_url: url, runner_token: token }: Lived): Promise<void> {
  const leased = (await post(`${url}/runner/leases`, token, { max: 4, lease_secs: 60, wait_secs: 5 })) as {
    calls: { call_id: number; lease_id: string }[];
  };
  expect(leased.calls).toHaveLength(1);
  for (const { call_id: id, lease_id } of leased.calls)
    await post(`${url}/runner/calls/${id}/complete`, token, {
      lease_id,
      result: { content_type: 'text/plain', body_base64: 'ZG9uZQ==' },
    });
}

async function expectSound({ database_url }: Lived): Promise<void> {
  expect(await tollbook(['verify'], { DATABASE_URL: database_url })).toMatchObject({ code: 0, stderr: '' });
}

/** As the page promises: if no migration has come since, the version before serves again. Otherwise it refuses to start. */
const hasWayBack = (old: Version): boolean => old.migrations.join() === numbered.join();

async function expectService(program: Program, dir: string): Promise<void> {
  await program.says(/self-check passed/);
  const lived = readLived(dir);
  await complete(lived);
  await expectSound(lived);
  await stop(program);
}

async function expectRefusal(program: Program): Promise<void> {
  const { code, stderr } = await program.ended;
  expect([code, stderr]).toEqual([2, expect.stringContaining('newer than this program')]);
}

test.skipIf(absence !== '').each(sources)(
  `a ledger that %s lived in is rehearsed, upgraded while its gateway works, and served; the version before returns as far as promised${absence}`,
  async (commit) => {
    const old = checkOut(commit);
    const [dir, port] = [temporaryFolder(), await freePort()];
    const first = start(old, dir, port);
    await first.says(/self-check passed/);
    const devnet = readLived(dir);
    const env = { DATABASE_URL: devnet.database_url };
    await complete(devnet);
    const waiting = await payForLater(devnet);
    const before = await schemaOf(devnet.database_url);

    const rehearsed = await tollbook(['migrate', '--dry-run'], env);
    expect(rehearsed).toMatchObject({ code: 0, stderr: '' });
    expect(await schemaOf(devnet.database_url)).toEqual(before);
    const ran = await tollbook(['migrate'], env);
    expect(ran).toMatchObject({ code: 0, stderr: '' });
    const [, names] = /^Ran (.*) in [\d.]+ s, and rolled it back/.exec(rehearsed.stdout) ?? [];
    // the files that run outside a transaction come last
    const [, late] = /^Not tried, .*: (.*)\.$/m.exec(rehearsed.stdout) ?? [];
    const all = [names, late].filter((some) => some !== undefined).join(', ');
    expect(ran.stdout).toBe(all === '' ? rehearsed.stdout : `Ran ${all}.\n`);
    expect(await schemaOf(devnet.database_url)).toEqual(
      comparable(readFileSync('migrations/schema.sql', 'utf8')),
    );
    // the page promises that the version directly before continues
    if (commit === sources[sources.length - 1]) await pay(devnet, 1);
    await stop(first);

    const second = start(here, dir, port);
    await second.says(/self-check passed/);
    const now = readLived(dir);
    await complete(now);
    await work(now);
    await eventually(async () => {
      const receipt = await fetch(`${now.gateway_url}/x402/receipts/${waiting}`);
      expect(await receipt.json()).toMatchObject({ state: 'completed' });
    });
    await expectSound(now);
    await stop(second);

    const third = start(old, dir, port);
    await (hasWayBack(old) ? expectService(third, dir) : expectRefusal(third));
  },
);

async function emptyDatabase(): Promise<string> {
  const name = `test_${randomBytes(8).toString('hex')}`;
  const [server, admin] = ['DATABASE', 'postgres'].map((database) =>
    inject('serverUrl').replace('DATABASE', database),
  ) as [string, string];
  await withClient(admin, (client) => client.query(`create database ${name}`));
  onTestFinished(async () => {
    await withClient(admin, async (client) => {
      await client.query(`drop database ${name} with (force)`);
      for (const role of ['writer', 'reader'])
        await client.query(`drop role if exists tollbook_${role}_${name}`);
    });
  });
  return server.replace('DATABASE', name);
}

test.skipIf(absence !== '')(
  `a ledger whose events this version does not read is refused, and its own version still works on it${absence}`,
  async () => {
    const old = checkOut(`${firstRead}^`);
    const env = { DATABASE_URL: await emptyDatabase() };
    expect(await old.spawn(['migrate'], env).ended).toMatchObject({ code: 0 });
    const before = await schemaOf(env.DATABASE_URL);
    for (const args of [['migrate'], ['migrate', '--dry-run']])
      expect(await tollbook(args, env)).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/events this version does not read: nothing was changed/),
      });
    expect(await schemaOf(env.DATABASE_URL)).toEqual(before);
    expect(await old.spawn(['migrate'], env).ended).toMatchObject({
      stdout: 'The database is up to date.\n',
    });
  },
);

test('a migrate that is killed at any moment leaves the database as it was or upgraded, and the next one completes it', async () => {
  const url = await emptyDatabase();
  const env = { DATABASE_URL: url };
  expect(await tollbook(['migrate'], env)).toMatchObject({ code: 0 });
  const upgraded = await schemaOf(url);
  const downgrade = `delete from tollbook.migration where name = '0008-development-versions';
    alter table tollbook.call_result drop column head; drop table tollbook.refused_request;
    drop function tollbook.append_uncontended; update tollbook.function_file set sha256 = ''`;
  const seen = new Set<string>();
  for (let delayMs = 150; !seen.has('upgraded'); delayMs += 150) {
    await withClient(url, (owner) => owner.query(downgrade));
    const before = await schemaOf(url);
    const program = spawnTollbook(['migrate'], env);
    await new Promise((resolve) => setTimeout(resolve, delayMs));
    await destroy(program);
    await eventually(async () => {
      const { rows } = await withClient(url, (owner) =>
        owner.query(
          `select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
        ),
      );
      expect(rows).toEqual([]);
    });
    const after = await schemaOf(url);
    expect([before, upgraded]).toContainEqual(after);
    const isDone = JSON.stringify(after) === JSON.stringify(upgraded);
    seen.add(isDone ? 'upgraded' : 'as before');
    expect(await tollbook(['migrate'], env)).toMatchObject({ code: 0 });
    expect(await schemaOf(url)).toEqual(upgraded);
  }
  expect([...seen]).toEqual(['as before', 'upgraded']);
});
