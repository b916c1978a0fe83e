import { readFile, readdir } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { type Column, identityTables, ledgerTables } from '../../src/store/schema.ts';
import { createDatabase } from '../support/database.ts';
import { dumpSchema } from '../support/schema-dump.ts';

test('migrations/schema.sql is the schema of a freshly migrated database (`npm run schema` writes it)', async () => {
  const database = await createDatabase();
  const dump = await database.asOwner(dumpSchema);
  await expect(dump).toMatchFileSnapshot('../../migrations/schema.sql');
});

test('every SQL function is called: by src/, by another function or by a trigger', async () => {
  const database = await createDatabase();
  const { rows } = await database.asOwner((owner) =>
    owner.query<{ name: string }>(
      `select proname as name from pg_proc where pronamespace in ('tollbook'::regnamespace, 'identity'::regnamespace)`,
    ),
  );
  const store = await textsIn('src/store');
  const functions = await textsIn('migrations/functions');
  const isCalled = (name: string): boolean =>
    new RegExp(`(?:tollbook|identity)\\.${name}\\b`).test(store) ||
    new RegExp(`(?:(?<!replace function \\w+\\.)\\b${name}\\(|execute function \\w+\\.${name}\\()`).test(
      functions.replaceAll(/^\s*--.*$/gm, ''),
    );
  expect(rows.length).toBeGreaterThan(40);
  expect(rows.map(({ name }) => name).filter((name) => !isCalled(name))).toEqual([]);
});

test('every function file defines its functions in the form that `migrate` recognises, each name once', async () => {
  const database = await createDatabase();
  const { rows } = await database.asOwner((owner) =>
    owner.query<{ name: string }>(
      `select format('%s.%s', pronamespace::regnamespace, proname) as name from pg_proc
       where pronamespace in ('tollbook'::regnamespace, 'identity'::regnamespace)`,
    ),
  );
  const texts = await textsIn('migrations/functions');
  const defined = [...texts.matchAll(/^create or replace function (\w+\.\w+)\(/gm)].map(
    ([, name = '']) => name,
  );
  expect(defined.toSorted()).toEqual(rows.map(({ name }) => name).toSorted());
  expect(defined).toHaveLength(new Set(defined).size);
});

async function textsIn(folder: string): Promise<string> {
  const texts = (await readdir(folder)).toSorted().map((name) => readFile(`${folder}/${name}`, 'utf8'));
  return (await Promise.all(texts)).join('\n');
}

test('the schema that queries are typed with has the tables, columns, types and nullability of the database', async () => {
  const database = await createDatabase();
  const { rows } = await database.asOwner((owner) =>
    owner.query<{ name: string; column: string; type: string; nullable: boolean }>(
      `select format('%s.%s', c.relnamespace::regnamespace, c.relname) as name, a.attname as column,
         format_type(a.atttypid, a.atttypmod) as type, not a.attnotnull as nullable
       from pg_class c join pg_attribute a on a.attrelid = c.oid
       where c.relnamespace in ('tollbook'::regnamespace, 'identity'::regnamespace) and c.relkind in ('r', 'v')
         and c.relname not like 'kysely\\_%' and a.attnum > 0 and not a.attisdropped`,
    ),
  );
  const actual = rows.map((row) => `${row.name}.${row.column} ${row.type}${row.nullable ? ' null' : ''}`);
  const typed = Object.entries({ ...ledgerTables, ...identityTables }).flatMap(([name, columns]) =>
    Object.entries<Column<unknown>>(columns).map(
      ([column, { type, isNullable }]) => `${name}.${column} ${type}${isNullable ? ' null' : ''}`,
    ),
  );
  expect(typed.toSorted()).toEqual(actual.toSorted());
});
