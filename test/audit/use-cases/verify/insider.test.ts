import type pg from 'pg';
import { expect, test } from 'vitest';
import { processEnvironment } from '../../../../src/base/config/environment.ts';
import { verifierOf } from '../../../../src/base/values/log/checkpoint.ts';
import { tableChecks, type TableCheck } from './table-checks.ts';
import { verifyDatabase } from '../../../../src/audit/use-cases/verify/verify-database.ts';
import { checkRows } from '../../../../src/audit/use-cases/verify/rows/check-rows.ts';
import { createDatabase, type TestDatabase } from '../../../support/database.ts';
import { useChain } from '../../../support/devnet.ts';
import { livedLedger, livedSigner } from '../../../support/lived-ledger.ts';

const chain = useChain();
const env = processEnvironment();
const tries = Number(env['TAMPERINGS'] ?? 90);
const seed = Number(env['TAMPER_SEED'] ?? 1);

/** Another value of a column's type. */
const changes: Readonly<Record<string, string>> = {
  bigint: 'coalesce(COLUMN, 0) + 1000003',
  integer: 'coalesce(COLUMN, 0) + 1000003',
  smallint: 'coalesce(COLUMN, 0) + 3',
  numeric: 'coalesce(COLUMN, 0) + 1',
  text: `coalesce(COLUMN, '') || 'x'`,
  bytea: String.raw`coalesce(COLUMN, '') || '\x01'::bytea`,
  date: 'COLUMN + 1',
  uuid: 'gen_random_uuid()',
  json: `'[]'::json`,
  boolean: 'not COLUMN',
  ARRAY: `coalesce(COLUMN, '{}') || '{x}'`,
  'timestamp with time zone': `coalesce(COLUMN, now()) + interval '1 second'`,
};

/** Of tables of which only some rows are compared: those. */
const comparedRows: Readonly<Record<string, string>> = {
  call_body: 'exists (select from tollbook.call where call.body_id = t.body_id)',
  call_result: `exists (select from tollbook.event e where e.type = 'completed' and (e.data::json->>'call_id')::bigint = t.call_id)`,
  credit_request: `position(':' in t.request_id) > 0`,
  log_head: 'exists (select from tollbook.log_anchored_head a where a.size = t.size)',
};
/** Tables whose rows may be missing, except these. */
const missingIsNamed = new Set(['call', 'call_body', 'credit_request', 'log_head']);

interface Table {
  readonly name: string;
  /** With its schema. */
  readonly qualified: string;
  readonly check: Extract<TableCheck, { readonly follows: string }>;
  readonly columns: readonly { readonly name: string; readonly type: string }[];
}

async function comparedTables(owner: pg.Client): Promise<Table[]> {
  const tables: Table[] = [];
  for (const [qualified, check] of Object.entries(tableChecks)) {
    if (!('follows' in check)) continue;
    const [schema, name = ''] = qualified.split('.');
    const { rows: columns } = await owner.query<{ name: string; type: string }>(
      `select column_name as name, data_type as type from information_schema.columns
        where table_schema = $1 and table_name = $2 order by 1`,
      [schema, name],
    );
    tables.push({ name, qualified, check, columns });
  }
  return tables;
}

test('every table of the schema has an entry that says what verify compares of it, and every column that it leaves out exists', async () => {
  const database = await createDatabase();
  await database.asOwner(async (owner) => {
    const { rows } = await owner.query<{ name: string }>(
      `select format('%s.%s', schemaname, tablename) as name from pg_tables
        where schemaname in ('tollbook', 'identity') order by 1`,
    );
    expect(Object.keys(tableChecks).toSorted()).toEqual(rows.map(({ name }) => name).toSorted());
    for (const { name, check, columns } of await comparedTables(owner)) {
      const known = new Set(columns.map((column) => column.name));
      const unknown = Object.keys(check.notCompared ?? {}).filter((column) => !known.has(column));
      expect({ name, unknown }).toEqual({ name, unknown: [] });
    }
  });
});

/** Numbers from 0 below 1, the same for a seed (mulberry32). */
function randomOf(from: number): () => number {
  let state = from;
  return () => {
    state = (state + 0x6d_2b_79_f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** What verify says: the tables that it names, and the first wrong event. */
async function named(database: TestDatabase): Promise<string> {
  const verdict = await verifyDatabase(database.pool, [], verifierOf(livedSigner));
  const rows = await checkRows(database.pool);
  return [verdict.fault?.words ?? '', ...rows.map(({ table, words }) => `${table}: ${words}`)]
    .join('\n')
    .trim();
}

const wordsOf: Readonly<Record<string, RegExp>> = {
  event: /./,
  lane: /^lane:|own position/m,
  lane_counter: /counter/,
  log_tile: /tile|sealed|log_tree: level/,
  log_tree: /log_tree|tile|sealed/,
  log_head: /tree head|log_tree|log_head/,
  // of another body or result, the one that is missing at its place is named
  call: /^call(?:_body|_result)?: /m,
  log_anchored_head: /log_anchored_head/,
  // the postings that name it have another account or commodity then
  book_account: /^(?:posting|book_account): /m,
  book_commodity: /^(?:posting|book_commodity): /m,
  reconciliation: /reconciliation/,
};

test(`of any row that an insider changes, removes or adds, verify names the table (${tries} by chance)`, async () => {
  const database = await livedLedger(chain);
  expect(await named(database)).toBe('');
  const random = randomOf(seed);
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)]!;
  const unnoticed: string[] = [];
  const counts = new Map<string, number>();
  await database.asOwner(async (owner) => {
    // the triggers that refuse a change are off
    await owner.query('set session_replication_role = replica');
    const tables: Table[] = [];
    for (const table of await comparedTables(owner)) {
      await owner.query(`create temporary table kept_${table.name} as select * from ${table.qualified}`);
      const { rowCount } = await owner.query(`select from kept_${table.name} limit 1`);
      if (rowCount === 1) tables.push(table);
    }
    // the ledger has rows in every table that is compared
    expect(tables.map(({ name }) => name)).toEqual((await comparedTables(owner)).map(({ name }) => name));
    for (let n = 0; n < tries;) {
      // each table once, then by chance
      const table = tables[n] ?? pick(tables);
      const tampering = tamperingOf(table, pick, random);
      if (!tampering) continue;
      try {
        if ((await owner.query(tampering.statement)).rowCount === 0) continue;
      } catch {
        // a constraint refuses it, also to the superuser
        continue;
      }
      n += 1;
      counts.set(table.name, (counts.get(table.name) ?? 0) + 1);
      const words = await named(database);
      const expected = wordsOf[table.name] ?? new RegExp(`^${table.name}: `, 'm');
      if (!expected.test(words)) unnoticed.push(`${table.name} ${tampering.what}: ${words}`);
      await owner.query(
        `truncate ${table.qualified} cascade; insert into ${table.qualified} overriding system value select * from kept_${table.name}`,
      );
      for (const other of tables.filter(({ name }) => dependents[table.name]?.includes(name)))
        await owner.query(
          `insert into ${other.qualified} overriding system value select * from kept_${other.name} on conflict do nothing`,
        );
    }
  });
  if (env['TAMPERINGS'] !== undefined)
    process.stdout.write(`seed ${seed}: ${[...counts].map((pair) => pair.join(' ')).join(', ')}\n`);
  expect(unnoticed).toEqual([]);
  expect(await named(database)).toBe('');
});

/** What `truncate … cascade` empties with a table. */
const dependents: Readonly<Record<string, readonly string[]>> = {
  lane_lock: ['log_tree'],
  account: ['api_key'],
};

function tamperingOf(
  { name, qualified, check, columns }: Table,
  pick: <T>(from: readonly T[]) => T,
  random: () => number,
): { readonly what: string; readonly statement: string } | undefined {
  const seedOfRow = Math.floor(random() * 1_000_000);
  const aRow = `t.ctid = (select t.ctid from ${qualified} t where ${comparedRows[name] ?? 'true'}
    order by md5(t.ctid::text || '${seedOfRow}') limit 1)`;
  const way = pick(['change', 'change', 'change', 'remove', 'add']);
  if (way === 'remove') {
    if (check.removed !== undefined && !missingIsNamed.has(name)) return undefined;
    return { what: 'removed', statement: `delete from ${qualified} t where ${aRow}` };
  }
  if (way === 'add') {
    if (check.added !== undefined) return undefined;
    const values = columns.map((column) =>
      column.name === 'generation' ? column.name : `(${changed(column)}) as ${column.name}`,
    );
    const copied = columns.map((column, i) => (keyColumns.has(column.name) ? values[i] : column.name));
    return {
      what: 'added',
      statement: `insert into ${qualified} (${columns.map((column) => column.name).join(', ')}) overriding system value
        select ${copied.join(', ')} from ${qualified} t where ${aRow}`,
    };
  }
  const compared = columns.filter(
    (column) =>
      !Object.hasOwn(check.notCompared ?? {}, column.name) || alsoCompared.has(`${name}.${column.name}`),
  );
  const column = pick(compared);
  const { name: of } = column;
  const mayEnd = name === 'operator' && (of === 'role' || of === 'user_id');
  const update = `update ${qualified} t set ${of} =`;
  switch (pick(['new', 'new', mayEnd ? 'new' : 'null', 'other'])) {
    case 'null':
      return { what: `without ${of}`, statement: `${update} null where ${of} is not null and ${aRow}` };
    case 'other': {
      // what another row has
      const others = `${qualified} o where o.${of}::text is distinct from t.${of}::text`;
      const other = `(select o.${of} from ${others} order by md5(o.ctid::text || '${seedOfRow}') limit 1)`;
      return {
        what: `with the ${of} of another row`,
        statement: `${update} ${other} where exists (select from ${others}) and ${aRow}`,
      };
    }
    default:
      return { what: `with another ${of}`, statement: `${update} ${changed(column)} where ${aRow}` };
  }
}

/** Columns that are left out for some rows only, of which this ledger has none. */
const alsoCompared = new Set(['claim.key', 'call.call_id', 'call.claims']);

/** What makes a copy of a row another row. */
const keyColumns = new Set([
  'seq',
  'version',
  'key',
  'payment',
  'call_id',
  'account_id',
  'chat_id',
  'request_id',
  'token_id',
  'key_id',
  'name',
  'type',
  'lane_id',
  'tile',
  'size',
  'day',
  'pay_to',
  'id',
  'sha256',
  'stream',
  'hash',
  'batch',
]);

function changed({ name, type }: { readonly name: string; readonly type: string }): string {
  return changes[type]?.replaceAll('COLUMN', name) ?? 'null';
}
