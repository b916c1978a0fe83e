import { execFile } from 'node:child_process';
import { globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import type pg from 'pg';
import { payment } from './payment.ts';

/** The newest pgbench of Debian's packages; npm's PostgreSQL has none. */
export function findPgbench(): string | undefined {
  return globSync('/usr/lib/postgresql/*/bin/pgbench').toSorted().at(-1);
}

/** Tables of the same shape, with the same indexes. */
export async function preparePgbench(pool: pg.Pool): Promise<void> {
  const tables = ['event', 'claim', 'call', 'call_body'];
  const copies = tables.map((name) => `create table pgbench.${name} (like tollbook.${name} including all)`);
  await pool.query(['create schema pgbench', ...copies].join(';'));
}

/** The events' data of one payment, which pgbench writes again and again. */
function eventData(): readonly string[] {
  const { quote, start, settle } = payment();
  return [quote, start, settle(1)].flatMap(({ events: list }) =>
    list.map(({ data }) => JSON.stringify(data)),
  );
}

const random = (salt: number): string =>
  `lpad(to_hex(hashint8extended(n::bigint, :seed::bigint + ${salt})), 16, '0')`;

const events = (all: readonly string[]): string =>
  `insert into pgbench.event (lane_id, seq, version, stream, type, at, data) ${all.join(' union all ')};`;

/**
 * The rows of a payment's three appends, for `size` payments in three transactions. The values are as long as real ones and
 * as random if an index holds them: made by a hash that costs next to nothing.
 */
function script(size: number): string {
  const stream = `'0x' || ${random(0)} || :tail::text`;
  const streamKey = `decode(${random(0)} || :tail::text, 'hex')`;
  const key = (salt: number, rest: string): string => `decode(${random(salt)} || '${rest}', 'hex')`;
  const payments = `from generate_series(1, ${size}) n`;
  const event = (place: number, version: number, type: string): string =>
    `select 2, :base::bigint + ${place * size} + n, ${version}, ${streamKey}, '${type}', now(), (:data${version})::text ${payments}`;
  const half = '0123456789abcdef';
  const claim = (salt: number, rest: string): string =>
    `select ${key(salt, rest)}, ${key(salt + 10, half)}, ${streamKey} ${payments}`;
  return [
    '\\set i :i + 1',
    `\\set base :i * ${5 * size}`,
    `\\set calls :i * ${size}`,
    '\\set seed random(1, 4611686018427387904)',
    events([event(0, 1, 'quote_issued')]),
    'begin;',
    events([event(1, 2, 'payment_verified'), event(2, 3, 'settlement_started')]),
    `insert into pgbench.claim (key, binding, stream) ${claim(1, half + half)} union all ${claim(2, half)};`,
    `insert into pgbench.call_body select (lpad(to_hex(:calls::bigint + n), 32, '0'))::uuid, 'application/json', convert_to(repeat('x', 100), 'UTF8'), now() ${payments};`,
    `insert into pgbench.call (call_id, stream, service_id, job_index, status, body_id, network, asset, symbol, payment, claims, due_at, created_at)
     overriding system value select :calls::bigint + n, ${stream}, 1, 0, 'pending', (lpad(to_hex(:calls::bigint + n), 32, '0'))::uuid, 'eip155:84532', '0xa5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5', 'USDC',
     :payment::text, :claims::json, now() + interval '5 seconds', now() ${payments};`,
    'end;',
    'begin;',
    events([event(3, 4, 'payment_settled'), event(4, 5, 'enqueued')]),
    `insert into pgbench.claim (key, binding, stream) ${claim(3, half + half)};`,
    `update pgbench.call set status = 'ready', due_at = now() where call_id > :calls::bigint and call_id <= :calls::bigint + ${size};`,
    'end;',
  ]
    .map((line) => line.replaceAll(/\s*\n\s*/g, ' '))
    .join('\n');
}

/** Payments a second that pgbench writes with prepared statements over one connection, in transactions of `size` payments. */
export async function runPgbench(
  program: string,
  url: string,
  size: number,
  seconds: number,
): Promise<number> {
  const dir = mkdtempSync(path.join(tmpdir(), 'tollbook-pgbench-'));
  const file = path.join(dir, 'payments.sql');
  writeFileSync(file, script(size));
  const variables: Readonly<Record<string, string>> = {
    // calls and events of other runs stay below
    i: String(size * 1_000_000_000),
    tail: 'ab'.repeat(24),
    payment: 'x'.repeat(66),
    claims: JSON.stringify([{ kind: 'quote', key: 'ab'.repeat(16), binding: 'ab'.repeat(16) }]),
    ...Object.fromEntries(eventData().map((data, at) => [`data${at + 1}`, data])),
  };
  const defined = Object.entries(variables).flatMap(([name, value]) => ['-D', `${name}=${value}`]);
  const { stdout } = await promisify(execFile)(program, [
    '-nMprepared',
    `-T${Math.ceil(seconds)}`,
    `-f${file}`,
    ...defined,
    url,
  ]);
  rmSync(dir, { recursive: true });
  const rate = /^tps = ([\d.]+)/m.exec(stdout)?.[1];
  if (rate === undefined || !/failed transactions: 0 /.test(stdout)) throw new Error(stdout);
  return Number(rate) * size;
}
