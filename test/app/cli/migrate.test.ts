import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import type pg from 'pg';
import { expect, inject, onTestFinished, test } from 'vitest';
import { startTollbook, tollbook } from '../../support/program.ts';
import { withClient } from '../../support/database.ts';

const serverUrl = inject('serverUrl');
const numbered = sqlFilesIn('migrations').filter((name) => /^\d/.test(name));
const files = sqlFilesIn('migrations/functions').map((name) => `functions/${name}`);
const views = 'functions/audit';
/** Those that run outside a transaction, after all others; a gateway starts without them. */
const late = numbered.filter((name) =>
  readFileSync(`migrations/${name}.sql`, 'utf8').startsWith('-- outside a transaction'),
);
const needed = numbered.filter((name) => !late.includes(name));
/** In their order: views use functions of every file. */
const tried = [...needed, ...files.filter((name) => name !== views), views];
const all = [...tried, ...late];

function sqlFilesIn(folder: string): string[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.sql'))
    .map((file) => file.slice(0, -'.sql'.length))
    .toSorted();
}

/** Its own database with nothing in it. */
async function emptyDatabase(): Promise<string> {
  const name = `test_${randomBytes(8).toString('hex')}`;
  await query(serverUrl.replace('DATABASE', 'postgres'), `create database ${name}`);
  onTestFinished(async () => {
    await query(serverUrl.replace('DATABASE', 'postgres'), `drop database ${name} with (force)`);
    for (const role of ['writer', 'reader'])
      await query(serverUrl.replace('DATABASE', 'postgres'), `drop role if exists tollbook_${role}_${name}`);
  });
  return serverUrl.replace('DATABASE', name);
}

async function query(url: string, sql: string): Promise<pg.QueryResult> {
  return withClient(url, (client) => client.query(sql));
}

async function migrationsIn(url: string): Promise<unknown[]> {
  const { rows } = await query(url, 'select name from tollbook.migration order by name');
  return rows.map((row: { name: string }) => row.name);
}

/** A gateway on this database that the development config describes; no peer of it is there. */
function serve(url: string) {
  return startTollbook(['serve', '--config', 'config/dev.toml'], {
    DATABASE_URL: url,
    TOLLBOOK_RUNNER_TOKEN: 'a-runner-token-of-enough-characters',
  });
}

test('an empty database gets every migration, and a second run applies none', async () => {
  const url = await emptyDatabase();
  const env = { DATABASE_URL: url };
  expect(await tollbook(['migrate'], env)).toMatchObject({
    code: 0,
    stdout: `Ran ${all.join(', ')}.\n`,
    stderr: '',
  });
  expect(await migrationsIn(url)).toEqual(numbered);
  expect(await tollbook(['migrate'], env)).toMatchObject({
    code: 0,
    stdout: 'The database is up to date.\n',
    stderr: '',
  });
});

test('a dry run prints what a run would change, or its error, and leaves the database as it was', async () => {
  const url = await emptyDatabase();
  const env = { DATABASE_URL: url };
  const nothing = [{ schema: null }];
  const rehearsed = await tollbook(['migrate', '--dry-run'], env);
  expect(rehearsed).toMatchObject({ code: 0, stderr: '' });
  expect(rehearsed.stdout).toMatch(
    new RegExp(
      `^Ran ${tried.join(', ')} in \\d+\\.\\d s, and rolled it back: nothing was changed\\.\n {2}create table `,
    ),
  );
  expect((await query(url, `select to_regnamespace('tollbook') as schema`)).rows).toEqual(nothing);
  await query(url, 'create schema tollbook; create table tollbook.lane ()');
  const refused = { code: 2, stdout: '', stderr: expect.stringContaining('relation "lane" already exists') };
  expect(await tollbook(['migrate', '--dry-run'], env)).toMatchObject(refused);
  expect(await tollbook(['migrate'], env)).toMatchObject(refused);
  await query(url, 'drop schema tollbook cascade');
  await tollbook(['migrate'], env);
  expect(await tollbook(['migrate', '--dry-run'], env)).toMatchObject({
    code: 0,
    stdout: 'The database is up to date.\n',
  });
  await query(url, `update tollbook.function_file set sha256 = '' where name = 'functions/clock'`);
  expect((await tollbook(['migrate', '--dry-run'], env)).stdout).toMatch(
    /^Ran functions\/clock, functions\/audit in .*\.\n$/,
  );
});

test('of several concurrent runs one applies every migration, and all of them succeed', async () => {
  const url = await emptyDatabase();
  const ends = await Promise.all([1, 2, 3, 4].map(() => tollbook(['migrate'], { DATABASE_URL: url })));
  expect(ends.map(({ code, stderr }) => ({ code, stderr }))).toEqual(
    ends.map(() => ({ code: 0, stderr: '' })),
  );
  const ran = ends.flatMap(({ stdout }) => /^Ran (.*)\.$/m.exec(stdout)?.[1]?.split(', ') ?? []);
  expect(ran).toEqual(all);
  expect(await migrationsIn(url)).toEqual(numbered);
});

test('several databases of one server can be migrated concurrently', async () => {
  const urls = [await emptyDatabase(), await emptyDatabase(), await emptyDatabase()];
  const ends = await Promise.all(urls.map((url) => tollbook(['migrate'], { DATABASE_URL: url })));
  expect(ends.map(({ code, stderr }) => ({ code, stderr }))).toEqual(
    ends.map(() => ({ code: 0, stderr: '' })),
  );
});

test('a gateway refuses a database that was never migrated, and changes nothing in it', async () => {
  const url = await emptyDatabase();
  const { code, stderr } = await serve(url).ended;
  expect(code).toBe(2);
  expect(stderr).toContain(tried.join(', '));
  expect(stderr).toContain('tollbook migrate');
  expect((await query(url, `select to_regnamespace('tollbook') as schema`)).rows).toEqual([{ schema: null }]);
});

test('a gateway refuses a database that lacks the latest migration', async () => {
  const url = await emptyDatabase();
  await tollbook(['migrate'], { DATABASE_URL: url });
  const latest = needed.at(-1) ?? '';
  await query(url, `delete from tollbook.migration where name = '${latest}'`);
  const { code, stderr } = await serve(url).ended;
  expect(code).toBe(2);
  expect(stderr).toContain(`lacks migrations (${latest})`);
});

test('a function file whose text has changed is applied again, and a gateway refuses to start before that', async () => {
  const url = await emptyDatabase();
  const env = { DATABASE_URL: url };
  await tollbook(['migrate'], env);
  await query(
    url,
    `update tollbook.function_file set sha256 = '' where name = 'functions/lease_calls';
     drop function tollbook.extend_lease;
     create function tollbook.extend_lease(bigint, uuid, int) returns text language sql as $$ select 'old' $$;
     create function tollbook.lease_calls(bigint[], int) returns int language sql as $$ select 1 $$;
     create function tollbook.of_an_older_version() returns int language sql as $$ select 1 $$;`,
  );
  const { stderr } = await serve(url).ended;
  expect(stderr).toContain('lacks migrations (functions/lease_calls)');
  expect(await tollbook(['migrate'], env)).toMatchObject({
    code: 0,
    stdout: 'Ran functions/lease_calls, functions/audit.\n',
  });
  const { rows } = await query(
    url,
    `select oid::regprocedure::text || ' ' || pg_get_function_result(oid) as name from pg_proc
     where proname in ('extend_lease', 'lease_calls', 'of_an_older_version')`,
  );
  expect(rows.map(({ name }: { name: string }) => name.split('TABLE')[0])).toEqual(
    expect.arrayContaining([
      // whatever arguments they have got since
      expect.stringMatching(
        /^tollbook\.extend_lease\(bigint,uuid,integer,.*SETOF timestamp with time zone$/,
      ) as string,
      expect.stringMatching(/^tollbook\.lease_calls\(bigint\[\],integer,integer,/) as string,
    ]),
  );
  expect(rows).toHaveLength(2);
});

test('without a database, migrate names what is missing and never prints the password', async () => {
  expect(await tollbook(['migrate'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('DATABASE_URL'),
  });
  const nowhere = await tollbook(['migrate'], { DATABASE_URL: 'postgres://user:hunter2@127.0.0.1:1/none' });
  expect(nowhere).toMatchObject({ code: 2, stderr: expect.stringContaining('127.0.0.1:1') });
  expect(nowhere.stderr).not.toContain('hunter2');
});
