import pg from 'pg';
import { decodeLeaf, type RecordedEvent } from '../domain/events/event.ts';
import { active, Conditions, type Page, readPage } from './payments.ts';
import type { Projection } from './projection.ts';

/** What some events have moved of one account's credit, or what all of them have. Micros. */
export interface AccountCredit {
  readonly account_id: number;
  readonly name: string | null;
  readonly balance: string;
  readonly held: string;
  readonly granted: string;
  readonly topped_up: string;
  /** Less what was taken back. */
  readonly captured: string;
  readonly expired: string;
  /** The last event that it is made of. */
  readonly last_seq: number;
}

/** Of the next events those of some types, in order, and where the next events end; undefined where there are none. */
export async function readNextOfTypes(
  pool: pg.Pool,
  afterSeq: number,
  max: number,
  types: readonly string[],
): Promise<{ readonly last: number; readonly events: readonly RecordedEvent[] } | undefined> {
  const { rows } = await pool.query<{ last: number | null; leaf: Buffer | null }>({
    name: 'read_next_of_types',
    text: `with next as materialized (
        select seq, type, leaf from tollbook.event where lane_id = 1 and seq > $1 order by seq limit $2)
      select ending.last, wanted.leaf
      from (select max(seq) as last from next) ending
      left join (select seq, leaf from next where type = any ($3)) wanted on true
      order by wanted.seq`,
    values: [afterSeq, max, types],
  });
  const last = rows[0]?.last;
  return last ? { last, events: rows.flatMap(({ leaf }) => (leaf ? [decodeLeaf(leaf)] : [])) } : undefined;
}

/** Adds to accounts and moves the generation, in one transaction. False where it stood elsewhere: nothing was added. */
export async function applyCredit(
  pool: pg.Pool,
  { generation, seq }: Projection,
  last: number,
  moved: readonly AccountCredit[],
): Promise<boolean> {
  const { rows } = await pool.query<{ done: boolean }>(
    `select tollbook.apply_credit(${generation}, ${seq}, ${last}, ${pg.escapeLiteral(JSON.stringify(moved))}) as done`,
  );
  return rows[0]?.done ?? false;
}

/** Accounts beyond an id, in the order of their ids; the one of a name where it is given. */
export function listAccountCredit(
  pool: pg.Pool,
  { name }: { readonly name?: string | undefined },
  afterId: number,
  limit: number,
): Promise<Page<AccountCredit>> {
  const where = new Conditions().add('account_id > ?', afterId).add('name = ?', name);
  return readPage<AccountCredit>(
    pool,
    `select account_id, name, balance::text, held::text, granted::text, topped_up::text, captured::text, expired::text,
       last_seq
     from tollbook.account_credit where generation = ${active}${where.sql}
     order by account_credit.account_id limit ${Math.trunc(limit)}`,
    where.values,
    'credit_seq',
  );
}
