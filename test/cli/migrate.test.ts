import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import pg from 'pg';
import { expect, inject, onTestFinished, test } from 'vitest';
import { startTollbook, tollbook } from '../support/program.ts';

const serverUrl = inject('serverUrl');
const all = readdirSync('migrations')
  .map((file) => file.replace(/\.sql$/, ''))
  .toSorted();

/** A database of its own with nothing in it. */
async function emptyDatabase(): Promise<string> {
  const name = `test_${randomBytes(8).toString('hex')}`;
  await query(serverUrl.replace('DATABASE', 'postgres'), `create database ${name}`);
  onTestFinished(async () => {
    await query(serverUrl.replace('DATABASE', 'postgres'), `drop database ${name} with (force)`);
  });
  return serverUrl.replace('DATABASE', name);
}

async function query(url: string, sql: string): Promise<pg.QueryResult> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return await client.query(sql);
  } finally {
    await client.end();
  }
}

async function migrationsIn(url: string): Promise<unknown[]> {
  const { rows } = await query(url, 'select name from tollbook.kysely_migration order by name');
  return rows.map((row: { name: string }) => row.name);
}

/** A gateway on this database that the development config describes; no peer of it is there. */
function serve(url: string) {
  return startTollbook(['serve', '--config', 'config/dev.toml'], {
    DATABASE_URL: url,
    TOLLBOOK_RUNNER_TOKEN: 'a-runner-token-of-length',
  });
}

test('an empty database gets every migration, and a second time none', async () => {
  const url = await emptyDatabase();
  const env = { DATABASE_URL: url };
  expect(await tollbook(['migrate'], env)).toMatchObject({
    code: 0,
    stdout: `Ran ${all.join(', ')}.\n`,
    stderr: '',
  });
  expect(await migrationsIn(url)).toEqual(all);
  expect(await tollbook(['migrate'], env)).toMatchObject({
    code: 0,
    stdout: 'The database is up to date.\n',
    stderr: '',
  });
});

test('several at once: each migration is run by one of them, and all of them are content', async () => {
  const url = await emptyDatabase();
  const ends = await Promise.all([1, 2, 3, 4].map(() => tollbook(['migrate'], { DATABASE_URL: url })));
  expect(ends.map(({ code, stderr }) => ({ code, stderr }))).toEqual(
    ends.map(() => ({ code: 0, stderr: '' })),
  );
  const ran = ends.flatMap(({ stdout }) => /^Ran (.*)\.$/m.exec(stdout)?.[1]?.split(', ') ?? []);
  expect(ran.toSorted()).toEqual(all);
  expect(await migrationsIn(url)).toEqual(all);
});

test('databases of one server can be migrated at once', async () => {
  const urls = [await emptyDatabase(), await emptyDatabase(), await emptyDatabase()];
  const ends = await Promise.all(urls.map((url) => tollbook(['migrate'], { DATABASE_URL: url })));
  expect(ends.map(({ code, stderr }) => ({ code, stderr }))).toEqual(
    ends.map(() => ({ code: 0, stderr: '' })),
  );
});

test('a gateway refuses a database that was never migrated, and leaves it as it is', async () => {
  const url = await emptyDatabase();
  const { code, stderr } = await serve(url).ended;
  expect(code).toBe(1);
  expect(stderr).toContain(all.join(', '));
  expect(stderr).toContain('tollbook migrate');
  expect((await query(url, `select to_regnamespace('tollbook') as schema`)).rows).toEqual([{ schema: null }]);
});

test('a gateway refuses a database that lacks the latest migration', async () => {
  const url = await emptyDatabase();
  await tollbook(['migrate'], { DATABASE_URL: url });
  const latest = all.at(-1) ?? '';
  await query(url, `delete from tollbook.kysely_migration where name = '${latest}'`);
  const { code, stderr } = await serve(url).ended;
  expect(code).toBe(1);
  expect(stderr).toContain(`lacks migrations (${latest})`);
});

test('without a database there is a plain word', async () => {
  expect(await tollbook(['migrate'])).toMatchObject({
    code: 78,
    stderr: expect.stringContaining('DATABASE_URL'),
  });
  const nowhere = await tollbook(['migrate'], { DATABASE_URL: 'postgres://user:hunter2@127.0.0.1:1/none' });
  expect(nowhere).toMatchObject({ code: 1, stderr: expect.stringContaining('127.0.0.1:1') });
  expect(nowhere.stderr).not.toContain('hunter2');
});
