import { randomBytes } from 'node:crypto';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import pg from 'pg';
import { expect, inject, onTestFinished, test } from 'vitest';
import { openPool } from '../../../src/ledger/store/database.ts';
import { migrate, pendingMigrations, rehearseMigration } from '../../../src/ledger/store/migrations.ts';
import { readLogTip } from '../../../src/audit/store/log.ts';
import { grantedWriterRole } from '../../../src/ledger/store/writer-role.ts';
import { createDatabase, withClient } from '../../support/database.ts';
import { dumpSchema } from '../../support/schema-dump.ts';
import { soonMs } from '../../support/time-limits.ts';

/** The repository's migrations with further files, or others in their place: names without the ending. */
function filesWith(files: Readonly<Record<string, string>>): URL {
  const folder = mkdtempSync(path.join(tmpdir(), 'tollbook-migrations-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  cpSync('migrations', folder, { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(path.join(folder, `${name}.sql`), text);
  return pathToFileURL(`${folder}/`);
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client(url);
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

const shared = { role: 'tollbook_writer', readerRole: 'tollbook_reader' };

/** What a version before would find. */
const stateOf = (url: string) =>
  withClient(url, async (owner) => ({
    schema: await dumpSchema(owner),
    applied: (
      await owner.query(`select name from tollbook.migration union all select name || encode(sha256, 'hex')
        from tollbook.function_file order by 1`)
    ).rows,
  }));

const functionFile = (definition: string) =>
  `${definition}\ngrant execute on function tollbook.extra to tollbook_writer;\n`;
const extraSql = (signature: string) =>
  `create or replace function tollbook.extra(${signature}) returns int language sql as 'select 1';`;

test('migrations, functions and grants are one transaction without a limit of time: after a fault in any of them all is as before', async () => {
  const { url, pool } = await createDatabase();
  const before = await stateOf(url);
  const good = {
    '0100-good': `create table tollbook.extra as select current_setting('statement_timeout') as ms`,
  };
  for (const [name, text] of [
    ['0101-bad', 'create table tollbook.half (); select 1/0'],
    ['functions/bad', `create or replace function tollbook.bad() returns int language sql as 'select 1/x';`],
    ['functions/bad', `${extraSql('')}\ngrant execute on function tollbook.absent to tollbook_writer;`],
  ] as const) {
    await expect(migrate(url, { ...shared, folder: filesWith({ ...good, [name]: text }) })).rejects.toThrow(
      /division by zero|column "x" does not exist|could not find a function named "tollbook.absent"/,
    );
    expect(await stateOf(url)).toEqual(before);
  }
  const repaired = filesWith({ ...good, 'functions/extra': functionFile(extraSql('')) });
  const { ran } = await migrate(url, { ...shared, folder: repaired });
  expect(ran).toEqual(['0100-good', 'functions/extra', 'functions/audit']);
  expect((await pool.query('select ms, tollbook.extra() from tollbook.extra')).rows).toEqual([
    { ms: '0', extra: 1 },
  ]);
});

test('whatever changed in the form of a function, migrate leaves one of each name, with exactly the stated rights', async () => {
  const { url } = await createDatabase();
  const fresh = await stateOf(url);
  const trigger = [
    'create or replace function tollbook.stop() returns trigger language plpgsql as $$ begin return null; end $$;',
    'create or replace trigger extra_stop before truncate on tollbook.lane execute function tollbook.stop();',
    '',
  ].join('\n');
  const inFile = (definition: string) => ({ 'functions/extra': functionFile(trigger + definition) });
  const forms = [
    extraSql('p_one int'),
    extraSql('p_one int, p_two int default 1'),
    extraSql('p_other int, p_two int default 1'),
    extraSql('p_other int').replace('returns int', 'returns bigint'),
    extraSql('out p_one int, out p_two int').replace('returns int', '').replace('select 1', 'select 1, 2'),
    extraSql('p_rows int[]').replace('returns int', 'returns table (n int)'),
  ];
  for (const form of forms) {
    await migrate(url, { ...shared, folder: filesWith(inFile(form)) });
    const { schema } = await stateOf(url);
    expect(schema.match(/^create function tollbook\.extra\(.*$/gm)).toHaveLength(1);
    expect(schema.match(/^grant execute on function tollbook\.extra\(.*$/gm)).toEqual([
      expect.stringMatching(/to tollbook_writer;$/),
    ]);
    expect(schema).toContain('CREATE TRIGGER extra_stop');
  }
  await withClient(url, (owner) => owner.query('grant insert, delete on tollbook.event to tollbook_writer'));
  const { ran } = await migrate(url, shared);
  expect(ran).toEqual(['functions/audit', 'functions/extra']);
  expect(await stateOf(url)).toEqual(fresh);
});

test('a function that an earlier fault left in two forms, or without any, is repaired by the next migrate', async () => {
  const { url } = await createDatabase();
  const fresh = await stateOf(url);
  await withClient(url, (owner) =>
    owner.query(`${extraSql('').replace('extra', 'append')} drop function tollbook.hold_leases`),
  );
  expect((await migrate(url, shared)).ran).toEqual([
    'functions/append',
    'functions/hold_leases',
    'functions/audit',
  ]);
  expect(await stateOf(url)).toEqual(fresh);
});

/** The lines of a dump about the schema `audit` other than columns. */
const linesOfViews = (text: string) => text.match(/^(?:create|grant) .* audit\..*$/gm);

test('a column and a function that views use can change, and the views come back as their file has them, with their rights', async () => {
  const { url } = await createDatabase();
  const before = await stateOf(url);
  const projections = readFileSync('migrations/functions/projections.sql', 'utf8');
  const folder = filesWith({
    '0100-wide': 'alter table tollbook.payment alter symbol type varchar(200)',
    'functions/projections': projections.replaceAll('p_bytes', 'p_other'),
  });
  await withClient(url, (owner) =>
    owner.query(
      'create view audit."Of an earlier version" as select 1; create view public.of_an_operator as select * from audit.payment',
    ),
  );
  expect(await rehearseMigration(url, { ...shared, folder })).toMatchObject({
    ran: ['0100-wide', 'functions/projections', 'functions/audit'],
    changes: [
      'drop view audit."Of an earlier version"',
      'drop view public.of_an_operator',
      'replace column tollbook.payment.symbol',
      'replace function tollbook.hex_text(bytea)',
    ],
  });
  await migrate(url, { ...shared, folder });
  const { schema } = await stateOf(url);
  expect(linesOfViews(schema)).toEqual(linesOfViews(before.schema));
  expect(linesOfViews(schema)).toContain('grant select on table audit.payment to tollbook_reader;');
  expect(schema).toContain('--   symbol character varying(200): ');
});

test('a rehearsal names every change and what it cannot try, fails where migrate would, and changes nothing', async () => {
  const { url } = await createDatabase();
  const before = await stateOf(url);
  const folder = filesWith({
    '0100-table': `create table tollbook.extra (n int primary key); alter table tollbook.lane add extra int;
      alter table tollbook.call_progress drop column fraction`,
    '0101-index': '-- outside a transaction\ncreate index concurrently extra_n on tollbook.extra (n);\n',
    'functions/clock': `${readFileSync('migrations/functions/clock.sql', 'utf8')}\n${extraSql('p_one int')}`,
    'functions/hold_leases': '',
  });
  expect(await rehearseMigration(url, { ...shared, folder })).toEqual({
    ran: ['0100-table', 'functions/clock', 'functions/hold_leases', 'functions/audit'],
    notTried: ['0101-index'],
    changes: [
      expect.stringMatching(/^drop column tollbook\.call_progress\.fraction$/),
      expect.stringMatching(/^drop function tollbook\.hold_leases\(/),
      'create table tollbook.extra',
      'create column tollbook.lane.extra',
      'create function tollbook.extra(integer)',
    ],
    ms: expect.any(Number),
  });
  const broken = filesWith({ '0100-bad': 'select 1/0' });
  await expect(rehearseMigration(url, { ...shared, folder: broken })).rejects.toThrow(/division by zero/);
  expect(await stateOf(url)).toEqual(before);
  expect(await rehearseMigration(url, shared)).toMatchObject({ ran: [], notTried: [], changes: [] });
});

test('a migration that waits for a lock holds appends up only briefly, and is applied once the lock is free', async () => {
  const { url, pool } = await createDatabase();
  const reader = await connect(url);
  await reader.query('begin');
  await reader.query('select from tollbook.lane');
  let isDone = false;
  const folder = filesWith({ '0100-wide': 'alter table tollbook.lane add column extra int' });
  const migrating = migrate(url, { ...shared, folder }).finally(() => (isDone = true));
  const waits: number[] = [];
  while (waits.length < 100 && Math.max(0, ...waits) < 200) {
    const start = performance.now();
    await pool.query(`select tollbook.append(1::smallint, gen_random_uuid(), 1, 0, '[]')`);
    waits.push(performance.now() - start);
  }
  expect(Math.max(...waits)).toBeLessThan(soonMs(0));
  expect(isDone).toBe(false);
  await reader.query('commit');
  expect((await migrating).ran).toEqual(['0100-wide', 'functions/audit']);
});

test('a file that says so runs outside a transaction after all others: appends continue, and gateways start without it', async () => {
  const { url } = await createDatabase();
  const text = `-- outside a transaction: the table is large
drop index concurrently if exists tollbook.event_extra;
create index concurrently event_extra on tollbook.event (extra);
`;
  const added = { '0101-column': 'alter table tollbook.event add extra int' };
  const broken = filesWith({ '0100-index': `${text}select 1/0;\n`, ...added });
  await expect(migrate(url, { ...shared, folder: broken })).rejects.toThrow(/division by zero/);
  expect(await withClient(url, (owner) => owner.query('select extra from tollbook.event'))).toBeDefined();
  const { ran } = await migrate(url, { ...shared, folder: filesWith({ '0100-index': text, ...added }) });
  expect(ran).toEqual(['0100-index']);
  const { rows } = await withClient(url, (owner) =>
    owner.query(`select indisvalid from pg_index where indexrelid = 'tollbook.event_extra'::regclass`),
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
  for (const run of [migrate, rehearseMigration])
    await expect(run(url, shared)).rejects.toThrow(
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
  expect((await migrate(urlOf(copy))).ran).toEqual(['grants']);
  expect((await migrate(urlOf(copy))).ran).toEqual([]);
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
  const first = await migrate(url);
  expect(first.ran.length).toBeGreaterThan(20);
  const given = `create role "${role}" nologin; grant "${role}" to "${owner}";`;
  expect(first.notice).toContain(given);
  expect(first.notice).toContain('tollbook migrate');
  expect(await grantedWriterRole(url)).toBeUndefined();
  expect(await pendingMigrations(url)).toEqual([]);
  // the owner asks the views, although there is no role for readers
  for (const view of ['payment', 'refusal'])
    expect((await withClient(url, (client) => client.query(`select * from audit.${view}`))).rows).toEqual([]);
  // again, and told again
  expect(await migrate(url)).toEqual({ ran: [], notice: first.notice });
  await admin.query(given);
  expect(await migrate(url)).toEqual({ ran: ['grants'], notice: undefined });
  expect(await grantedWriterRole(url)).toBe(role);
  const pool = openPool({ url, role, maxConnections: 1 });
  onTestFinished(() => pool.end());
  expect(await readLogTip(pool, 'origin')).toMatchObject({ size: 0 });
});

test('where an administrator has made the role, migrate creates none, and needs no right to', async () => {
  const { admin, owner, role, url } = await ownedDatabase();
  await admin.query(`create role ${role} nologin`);
  const { notice } = await migrate(url);
  expect(notice).toContain(`grant "${role}" to "${owner}";`);
  expect(notice).not.toContain('create role');
  expect(await grantedWriterRole(url)).toBeUndefined();
  // the role has its rights already: nothing is to be migrated once the user is a member
  await admin.query(`grant ${role} to ${owner}`);
  expect(await grantedWriterRole(url)).toBe(role);
  expect(await migrate(url)).toEqual({ ran: [], notice: undefined });
});

test('a user that may create roles becomes a member that can work as the role', async () => {
  const { role, url } = await ownedDatabase('createrole');
  expect(await migrate(url)).toMatchObject({ notice: undefined });
  expect(await grantedWriterRole(url)).toBe(role);
  const pool = openPool({ url, role, maxConnections: 1 });
  onTestFinished(() => pool.end());
  expect(await readLogTip(pool, 'origin')).toMatchObject({ size: 0 });
});
