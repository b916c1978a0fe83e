import { glob, readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import type { Column } from '../../../src/ledger/store/columns.ts';
import { functionSignatures, type Signature } from '../../../src/ledger/store/functions.ts';
import { identityTables } from '../../../src/ledger/store/identity-schema.ts';
import { ledgerTables } from '../../../src/ledger/store/schema.ts';
import { createDatabase } from '../../support/database.ts';
import { dumpSchema } from '../../support/schema-dump.ts';

test('migrations/schema.sql is the schema of a freshly migrated database (`npm run schema` writes it)', async () => {
  const database = await createDatabase();
  const dump = await database.asOwner(dumpSchema);
  await expect(dump).toMatchFileSnapshot('../../../migrations/schema.sql');
});

test('every SQL function is called: by src/, by another function or by a trigger', async () => {
  const database = await createDatabase();
  const { rows } = await database.asOwner((owner) =>
    owner.query<{ name: string }>(
      `select proname as name from pg_proc where pronamespace in ('tollbook'::regnamespace, 'identity'::regnamespace)`,
    ),
  );
  const store = await textsIn('src/*/store/*.ts', 'functions.ts');
  const functions = await textsIn('migrations/functions/*');
  const isCalled = (name: string): boolean =>
    new RegExp(`(?:tollbook|identity)\\.${name}\\b|call(?:Table)?Function\\(\\s*pool,\\s*'${name}'`).test(
      store,
    ) ||
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
       where pronamespace in ('tollbook'::regnamespace, 'identity'::regnamespace, 'audit'::regnamespace)`,
    ),
  );
  const texts = await textsIn('migrations/functions/*');
  const defined = [...texts.matchAll(/^create or replace function (\w+\.\w+)\(/gm)].map(
    ([, name = '']) => name,
  );
  expect(defined.toSorted()).toEqual(rows.map(({ name }) => name).toSorted());
  expect(defined).toHaveLength(new Set(defined).size);
});

async function textsIn(pattern: string, without = '-'): Promise<string> {
  const files = await Array.fromAsync(glob(pattern));
  const named = files.filter((file) => !file.endsWith(`/${without}`)).toSorted();
  const texts = named.map((file) => readFile(file, 'utf8'));
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
         and c.relname <> 'migration' and a.attnum > 0 and not a.attisdropped`,
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

test('the signatures that calls are typed with are those of the functions in the database', async () => {
  const database = await createDatabase();
  const { rows } = await database.asOwner((owner) =>
    owner.query<{ name: string; takes: string[]; returns: string[] }>(
      `select proname as name, array(select format_type(type, null) from unnest(proargtypes) type) as takes,
         case when proallargtypes is null then array[format_type(prorettype, null)] else array(
           select format('%s %s', name, format_type(type, null))
           from unnest(proallargtypes, proargnames, proargmodes) argument(type, name, mode) where mode <> 'i') end as returns
       from pg_proc where pronamespace = 'tollbook'::regnamespace and proname = any ($1)`,
      [Object.keys(functionSignatures)],
    ),
  );
  const typed = Object.entries<Signature>(functionSignatures).map(([name, signature]) => ({
    name,
    takes: signature.takes.map(({ type }) => type),
    returns: signature.rows
      ? Object.entries(signature.rows).map(([column, { type }]) => `${column} ${type}`)
      : [signature.returns?.type],
  }));
  expect(typed).toEqual(rows.toSorted((a, b) => (a.name < b.name ? -1 : 1)));
});
