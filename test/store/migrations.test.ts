import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import pg from 'pg';
import { expect, inject, onTestFinished, test } from 'vitest';
import { openPool } from '../../src/store/database.ts';
import { migrate } from '../../src/store/migrations.ts';
import { readLogTip } from '../../src/store/log.ts';
import { grantedWriterRole } from '../../src/store/writer-role.ts';
import { createDatabase } from '../support/database.ts';

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

const further = { role: 'tollbook_writer' };

test('each migration is committed by itself and has no limit of time, and a run after a failed one goes on there', async () => {
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
  expect(Math.max(...waits)).toBeLessThan(4_000);
  expect(isDone).toBe(false);
  await reader.query('commit');
  expect(await migrating).toEqual(['0100-wide']);
});

test('a file that says so runs outside a transaction: an index is built while appends go on', async () => {
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

test('databases of one server have writer roles of their own, and a copy gets its own with its next migration', async () => {
  const server = inject('serverUrl');
  const admin = await connect(server.replace('DATABASE', 'postgres'));
  const names = [1, 2].map(() => `test_${randomBytes(8).toString('hex')}`);
  const [first = '', copy = ''] = names;
  onTestFinished(async () => {
    for (const name of names) {
      await admin.query(`drop database if exists ${name} with (force)`);
      await admin.query(`drop role if exists tollbook_writer_${name}`);
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
