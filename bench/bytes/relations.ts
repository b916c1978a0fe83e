import type pg from 'pg';

/** Bytes by the name of a table or an index. */
export type Bytes = ReadonlyMap<string, number>;

/** What was written to the write-ahead log between two places, by table and index; `other` is commits and the like. */
export interface Written {
  readonly bytes: Bytes;
  /** Of them, whole pages: the first change of each page after a checkpoint writes the page. */
  readonly pages: Bytes;
}

/** The size of every table and index of the ledger. Vacuumed first, so that the space of deleted rows is used again. */
export async function readSizes(pool: pg.Pool): Promise<Bytes> {
  await pool.query('vacuum');
  const { rows } = await pool.query<{ name: string; bytes: number }>(
    `select relname as name, pg_relation_size(oid)
       + case reltoastrelid when 0 then 0 else pg_total_relation_size(reltoastrelid) end as bytes
     from pg_class where relnamespace = 'tollbook'::regnamespace and relkind in ('r', 'i')`,
  );
  return new Map(rows.map(({ name, bytes }) => [name, bytes]));
}

export async function readWalPlace(pool: pg.Pool): Promise<string> {
  const { rows } = await pool.query<{ place: string }>('select pg_current_wal_insert_lsn()::text as place');
  return rows[0]?.place ?? '';
}

/** Reads the log itself, with the extension pg_walinspect. A record that changes several relations counts for the first. */
export async function readWritten(pool: pg.Pool, from: string, to: string): Promise<Written> {
  await pool.query('create extension if not exists pg_walinspect');
  const { rows } = await pool.query<{ name: string; bytes: number; pages: number }>(
    `select coalesce(c.relname, 'other') as name, sum(r.record_length)::bigint as bytes, sum(r.fpi_length)::bigint as pages
     from pg_get_wal_records_info($1, $2) r
     left join pg_class c on c.relnamespace = 'tollbook'::regnamespace
       and c.relfilenode = substring(r.block_ref from 'rel [0-9]+/[0-9]+/([0-9]+)')::oid
     group by 1`,
    [from, to],
  );
  return {
    bytes: new Map(rows.map(({ name, bytes }) => [name, bytes])),
    pages: new Map(rows.map(({ name, pages }) => [name, pages])),
  };
}

export const total = (bytes: Bytes): number => bytes.values().reduce((sum, one) => sum + one, 0);

/** `after` less `before`, name by name. */
export function grownBy(before: Bytes, after: Bytes): Bytes {
  return new Map([...after].map(([name, bytes]) => [name, bytes - (before.get(name) ?? 0)]));
}

export function sumOf(all: readonly Bytes[]): Bytes {
  const sums = new Map<string, number>();
  for (const [name, bytes] of all.flatMap((one) => [...one])) sums.set(name, (sums.get(name) ?? 0) + bytes);
  return sums;
}
