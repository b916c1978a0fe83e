import { expect, test } from 'vitest';
import { readerRole } from '../../../src/ledger/store/database.ts';
import { createDatabase, type TestDatabase, withClient } from '../../support/database.ts';

/** Appends events as an intruder with the owner's rights may: their data need no meaning. */
async function insert(database: TestDatabase, events: readonly (readonly [string, string, string])[]) {
  await database.asOwner(async (owner) => {
    for (const [index, [stream, type, data]] of events.entries())
      await owner.query(
        `insert into tollbook.event (lane_id, seq, at, version, stream, type, data)
          values (1, $1, now(), 1, tollbook.stream_key($2), $3, $4)`,
        [index + 1, stream, type, data],
      );
  });
}

const read = <T extends object>(database: TestDatabase, text: string, values: readonly unknown[] = []) =>
  database.asOwner(async (owner) => {
    await owner.query(`set role ${readerRole}`);
    return (await owner.query<T>(text, [...values])).rows;
  });

test('an event that jsonb cannot hold is shown as its text, and hides no other event from any view', async () => {
  const database = await createDatabase();
  const readable = [
    '{"name":"a b"}',
    String.raw`{"name":"a\nb"}`,
    // the escape of a backslash, and a whole pair
    String.raw`{"name":"\\u0000 \\ud800"}`,
    String.raw`{"name":"\ud83d\ude00"}`,
  ];
  const unreadable = [
    String.raw`{"name":"\u0000"}`,
    String.raw`{"name":"\\\u0000"}`,
    String.raw`{"name":"\ud83d"}`,
    String.raw`{"name":"\uDE00\uD83D"}`,
    String.raw`{"name":"\ud800\ud83d\ude00"}`,
  ];
  const types = [
    'quote_issued',
    'settlement_started',
    'payment_settled',
    'payment_recovered',
    'request_refused',
    'refusals_counted',
  ];
  const stream = 'a-stream-whose-name-has-32-bytes';
  await insert(database, [
    ...readable.map((data, n) => [n === 0 ? stream : `readable:${n}`, 'data_pruned', data] as const),
    ...unreadable.map((data, n) => [`unreadable:${n}`, 'data_pruned', data] as const),
    ...types.map((type) => [`unreadable:${type}`, type, unreadable[0]!] as const),
  ]);
  const data = [
    ...readable.map((text) => JSON.parse(text) as unknown),
    ...[...unreadable, ...types.map(() => unreadable[0])].map((text) => ({ unreadable: text })),
  ];
  expect(await read(database, 'select data from audit.event order by seq')).toEqual(
    data.map((one) => ({ data: one })),
  );
  // PostgreSQL itself refuses exactly those
  for (const text of unreadable)
    await expect(read(database, 'select $1::jsonb', [text])).rejects.toMatchObject({ code: /22P0[25]/ });
  for (const [view, rows] of [
    ['quote', 1],
    ['settlement', 3],
    ['refusal', 1],
  ] as const)
    expect(await read(database, `select * from audit.${view}`)).toHaveLength(rows);
  expect(await read(database, 'select seq, stream, data from audit.events_of($1)', [stream])).toEqual([
    { seq: '1', stream, data: data[0] },
  ]);
});

test('a time and numbers that a node may report, however large, hide no settlement', async () => {
  const database = await createDatabase();
  const most = Number.MAX_SAFE_INTEGER;
  const block = { block_number: '9'.repeat(78), block_time: most, log_index: most };
  await insert(database, [
    ['0x'.padEnd(66, 'a'), 'payment_settled', JSON.stringify({ ...block, amount: '1' })],
    [
      'one',
      'payment_recovered',
      JSON.stringify({ amount: '9'.repeat(78), decimals: 36, symbol: 'X', block_time: 1 }),
    ],
  ]);
  expect(
    await read(
      database,
      'select amount, amount_atoms, block_number, block_time, log_index from audit.settlement order by seq',
    ),
  ).toEqual([
    {
      amount: null,
      amount_atoms: '1',
      block_number: block.block_number,
      block_time: null,
      log_index: String(most),
    },
    {
      amount: `${'9'.repeat(42)}.${'9'.repeat(36)}`,
      amount_atoms: '9'.repeat(78),
      block_number: null,
      block_time: new Date(1_000),
      log_index: null,
    },
  ]);
});

test('readers find events by number, time and stream, and steps of a settlement, with indexes', async () => {
  const database = await createDatabase();
  await database.asOwner(async (owner) => {
    await owner.query(
      `insert into tollbook.event (lane_id, seq, at, version, stream, type, data)
        select 1, n, '2026-01-01'::timestamptz + n * interval '1 second', 1 + n % 4, tollbook.stream_key('a:' || n / 4), 'data_pruned', '{"a":"b"}'
        from generate_series(0, 199999) n`,
    );
    await owner.query('vacuum analyze tollbook.event');
  });
  const planOf = async (text: string) => {
    const rows = await read<{ 'QUERY PLAN': string }>(database, `explain ${text}`);
    return rows.map((row) => row['QUERY PLAN']).join('\n');
  };
  const during = `at >= '2026-01-02' and at < '2026-01-02 00:10'`;
  for (const [text, index] of [
    ['select * from audit.event where seq between 150000 and 150100', 'event_pkey'],
    [`select * from audit.event where ${during}`, 'event_at'],
    [`select * from audit.settlement where ${during}`, 'event_at'],
    [`select * from audit.quote where ${during}`, 'event_at'],
    [`select * from audit.refusal where ${during}`, 'event_at'],
    [`select * from audit.events_of('a:7') order by version`, 'event_stream_version_key'],
  ] as const) {
    const plan = await planOf(text);
    expect([text, plan]).toEqual([text, expect.stringContaining(index)]);
    expect([text, plan]).toEqual([text, expect.not.stringContaining('Seq Scan')]);
  }
  expect(await read(database, `select seq from audit.events_of('a:7') order by version`)).toEqual(
    ['28', '29', '30', '31'].map((seq) => ({ seq })),
  );
});

test('the views give their reader nothing that its role may not read, and nobody else anything', async () => {
  const database = await createDatabase();
  const views = await read<{ name: string }>(
    database,
    `select format('audit.%I', viewname) as name from pg_views where schemaname = 'audit'`,
  );
  expect(views.length).toBeGreaterThan(7);
  const undocumented = await read(
    database,
    `select attrelid::regclass, attname from pg_attribute join pg_class c on c.oid = attrelid
      where relnamespace = 'audit'::regnamespace and relkind = 'v'
        and (obj_description(c.oid) is null or col_description(c.oid, attnum) is null)`,
  );
  expect(undocumented).toEqual([]);
  await database.asOwner((owner) =>
    owner.query(`revoke all on all tables in schema tollbook from ${readerRole}`),
  );
  // each view reads with the rights of its reader, also where an owner's right would do
  for (const { name } of views)
    await expect(read(database, `select * from ${name}`)).rejects.toThrow(
      /permission denied for (?:table|view)/,
    );
  await withClient(database.url, async (client) => {
    await client.query('set role pg_read_all_stats');
    for (const { name } of views)
      await expect(client.query(`select * from ${name}`)).rejects.toThrow(
        'permission denied for schema audit',
      );
    await expect(client.query(`select audit.json_of('{}')`)).rejects.toThrow(
      'permission denied for schema audit',
    );
  });
});
