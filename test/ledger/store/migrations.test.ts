import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import pg from 'pg';
import { expect, inject, onTestFinished, test } from 'vitest';
import { openPool } from '../../../src/ledger/store/database.ts';
import { migrate, pendingMigrations } from '../../../src/ledger/store/migrations.ts';
import { readLogTip } from '../../../src/audit/store/log.ts';
import { grantedWriterRole } from '../../../src/ledger/store/writer-role.ts';
import { createDatabase } from '../../support/database.ts';
import { soonMs } from '../../support/time-limits.ts';

/** A folder with further migrations, each a file. */
function filesOf(files: Readonly<Record<string, string>>): URL {
  const folder = mkdtempSync(path.join(tmpdir(), 'tollbook-migrations-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(path.join(folder, `${name}.sql`), text);
  return pathToFileURL(`${folder}/`);
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client(url);
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

const further = { role: 'tollbook_writer', readerRole: 'tollbook_reader' };

test('each migration is committed by itself and has no limit of time, and a run after a failed one continues there', async () => {
  const { url, pool } = await createDatabase();
  const timeout = `create table tollbook.extra as select current_setting('statement_timeout') as ms`;
  const broken = filesOf({ '0100-good': timeout, '0101-bad': 'create table tollbook.half (); select 1/0' });
  await expect(migrate(url, { ...further, folder: broken })).rejects.toThrow(/division by zero/);
  const repaired = filesOf({ '0100-good': timeout, '0101-bad': 'create table tollbook.half ()' });
  expect(await migrate(url, { ...further, folder: repaired })).toEqual(['0101-bad']);
  expect((await pool.query('select ms from tollbook.extra')).rows).toEqual([{ ms: '0' }]);
});

test('a migration that waits for a lock holds appends up only briefly, and is applied once the lock is free', async () => {
  const { url, pool } = await createDatabase();
  const reader = await connect(url);
  await reader.query('begin');
  await reader.query('select from tollbook.lane');
  let isDone = false;
  const folder = filesOf({ '0100-wide': 'alter table tollbook.lane add column extra int' });
  const migrating = migrate(url, { ...further, folder }).finally(() => (isDone = true));
  const waits: number[] = [];
  while (waits.length < 100 && Math.max(0, ...waits) < 200) {
    const start = performance.now();
    await pool.query(`select tollbook.append(1::smallint, gen_random_uuid(), 1, 0, '[]')`);
    waits.push(performance.now() - start);
  }
  expect(Math.max(...waits)).toBeLessThan(soonMs(0));
  expect(isDone).toBe(false);
  await reader.query('commit');
  expect(await migrating).toEqual(['0100-wide']);
});

test('a file that says so runs outside a transaction: an index is built while appends continue', async () => {
  const { url, pool } = await createDatabase();
  const text = `-- outside a transaction: the table is large
drop index concurrently if exists tollbook.event_extra;
create index concurrently event_extra on tollbook.event (type);
`;
  expect(await migrate(url, { ...further, folder: filesOf({ '0100-index': text }) })).toEqual(['0100-index']);
  const { rows } = await pool.query(
    `select indisvalid from pg_index where indexrelid = 'tollbook.event_extra'::regclass`,
  );
  expect(rows).toEqual([{ indisvalid: true }]);
});

test('migrate of an older version refuses a database that a newer version has migrated, and changes nothing in it', async () => {
  const { url, asOwner } = await createDatabase();
  const functions = `select name, encode(sha256, 'hex') as sha256 from tollbook.function_file order by name`;
  const newer = `create function tollbook.of_a_newer_version() returns int language sql as 'select 1';
    insert into tollbook.migration values ('9999-newer', now());
    insert into tollbook.function_file values ('functions/newer', 'x')`;
  const before = await asOwner(async (owner) => {
    await owner.query(newer);
    return (await owner.query(functions)).rows;
  });
  await expect(migrate(url, { role: 'tollbook_writer' })).rejects.toThrow(
    /database is newer than this program: it has the migrations 9999-newer/,
  );
  await asOwner(async (owner) => {
    expect((await owner.query(functions)).rows).toEqual(before);
    expect((await owner.query('select tollbook.of_a_newer_version() as n')).rows).toEqual([{ n: 1 }]);
  });
});

test('databases of one server have separate writer roles, and a copy gets its own with its next migration', async () => {
  const server = inject('serverUrl');
  const admin = await connect(server.replace('DATABASE', 'postgres'));
  const names = [1, 2].map(() => `test_${randomBytes(8).toString('hex')}`);
  const [first = '', copy = ''] = names;
  onTestFinished(async () => {
    for (const name of names) {
      await admin.query(`drop database if exists ${name} with (force)`);
      for (const kind of ['writer', 'reader'])
        await admin.query(`drop role if exists tollbook_${kind}_${name}`);
    }
  });
  const urlOf = (name: string) => server.replace('DATABASE', name);
  await admin.query(`create database ${first}`);
  await migrate(urlOf(first));
  await admin.query(`create database ${copy} template ${first}`);
  expect((await migrate(urlOf(copy))).length).toBeGreaterThan(20);
  expect(await migrate(urlOf(copy))).toEqual([]);
  for (const name of names) {
    expect(await grantedWriterRole(urlOf(name))).toBe(`tollbook_writer_${name}`);
    const readAs = async (role: string) => {
      const pool = openPool({ url: urlOf(name), role, maxConnections: 1 });
      try {
        return await readLogTip(pool, 'origin');
      } finally {
        await pool.end();
      }
    };
    expect(await readAs(`tollbook_writer_${name}`)).toMatchObject({ size: 0 });
    const other = name === first ? copy : first;
    await expect(readAs(`tollbook_writer_${other}`)).rejects.toThrow(/permission denied/);
  }
});

/** A database of a role that may log in and owns it, and nothing more; `as` connects as that role. */
async function ownedDatabase(rights = '') {
  const admin = await connect(inject('serverUrl').replace('DATABASE', 'postgres'));
  const name = `test_${randomBytes(8).toString('hex')}`;
  const [owner, role] = [`${name}_owner`, `tollbook_writer_${name}`];
  onTestFinished(async () => {
    await admin.query(`drop database if exists ${name} with (force)`);
    await admin.query(`drop role if exists ${role}`);
    await admin.query(`drop role if exists ${owner}`);
  });
  await admin.query(`create role ${owner} login password 'test' ${rights}`);
  await admin.query(`create database ${name} owner ${owner}`);
  const url = inject('serverUrl')
    .replace('DATABASE', name)
    .replace(/\/\/([^/@]*@)?/, `//${owner}:test@`);
  return { admin, owner, role, url };
}

test('a user that owns the database and may not create roles migrates it without the role, and gets the statements that complete it', async () => {
  const { admin, owner, role, url } = await ownedDatabase();
  const notices: string[] = [];
  const onNotice = (text: string): void => void notices.push(text);
  expect((await migrate(url, { onNotice })).length).toBeGreaterThan(20);
  const given = `create role "${role}" nologin; grant "${role}" to "${owner}";`;
  expect(notices).toEqual([expect.stringContaining(given)]);
  expect(notices[0]).toContain('tollbook migrate');
  expect(await grantedWriterRole(url)).toBeUndefined();
  expect(await pendingMigrations(url)).toEqual([]);
  // again, and told again
  expect(await migrate(url, { onNotice })).toEqual([]);
  expect(notices).toHaveLength(2);
  await admin.query(given);
  expect((await migrate(url, { onNotice })).length).toBeGreaterThan(20);
  expect(notices).toHaveLength(2);
  expect(await grantedWriterRole(url)).toBe(role);
  const pool = openPool({ url, role, maxConnections: 1 });
  onTestFinished(() => pool.end());
  expect(await readLogTip(pool, 'origin')).toMatchObject({ size: 0 });
});

test('where an administrator has made the role, migrate creates none, and needs no right to', async () => {
  const { admin, owner, role, url } = await ownedDatabase();
  await admin.query(`create role ${role} nologin`);
  const notices: string[] = [];
  const onNotice = (text: string): void => void notices.push(text);
  await migrate(url, { onNotice });
  expect(notices).toEqual([expect.stringContaining(`grant "${role}" to "${owner}";`)]);
  expect(notices[0]).not.toContain('create role');
  expect(await grantedWriterRole(url)).toBeUndefined();
  // the role has its rights already: nothing is to be migrated once the user is a member
  await admin.query(`grant ${role} to ${owner}`);
  expect(await grantedWriterRole(url)).toBe(role);
  expect(await migrate(url, { onNotice })).toEqual([]);
  expect(notices).toHaveLength(1);
});

test('a user that may create roles becomes a member that can work as the role', async () => {
  const { role, url } = await ownedDatabase('createrole');
  await migrate(url, { onNotice: (text) => expect.unreachable(text) });
  expect(await grantedWriterRole(url)).toBe(role);
  const pool = openPool({ url, role, maxConnections: 1 });
  onTestFinished(() => pool.end());
  expect(await readLogTip(pool, 'origin')).toMatchObject({ size: 0 });
});
