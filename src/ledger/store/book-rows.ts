import type pg from 'pg';
import { decodeLeaf, type RecordedEvent } from '../rules/event.ts';
import { type EndedItem, type GivenItem, namedItems } from './open-items.ts';
import type { RowSnapshot, WrongRow } from './stored-rows.ts';

type Client = Pick<pg.Pool, 'query'>;

/** A commodity by its place: the currency of credit has 0, tokens and coins follow by their first use. */
export interface CommodityRow {
  readonly id: number;
  /** What it is. */
  readonly key: string;
  readonly name: string;
  readonly tag: string;
  readonly symbol: string;
  readonly decimals: number;
  readonly network: string | null;
  readonly asset: string | null;
}

/** An address that received payments, with the `seq` of its first event. */
export interface PayeeRow {
  readonly network: string;
  readonly address: string;
  readonly since: number;
}

/** What an account has of granted and of bought credit, in micros as decimal text. */
export interface CreditPartsRow {
  readonly account_id: number;
  readonly granted: string;
  readonly bought: string;
}

/** One move of an entry; `atoms` as decimal text. */
export interface PostingRow {
  /** The event that caused it. */
  readonly seq: number;
  /** From 1, within the event. */
  readonly leg: number;
  readonly category: string;
  readonly debit: string;
  readonly credit: string;
  /** The key of its commodity. */
  readonly commodity: string;
  readonly atoms: string;
  /** Of a conversion to credit: the payment's stream. */
  readonly quote: string | null;
}

/** Its day, `YYYY-MM-DD` (UTC), accounts as their places from 1 in the step's list, and its commodity's id. */
type GivenPosting = Omit<PostingRow, 'debit' | 'credit' | 'commodity'> & {
  readonly day: string;
  readonly debit: number;
  readonly credit: number;
  readonly commodity: number;
};

/** The books' part of a step: what is new or has changed. */
export interface BookRows {
  readonly accounts: readonly string[];
  readonly postings: readonly GivenPosting[];
  readonly commodities: readonly CommodityRow[];
  readonly payees: readonly PayeeRow[];
  readonly credit: readonly CreditPartsRow[];
  readonly items: readonly GivenItem[];
  readonly ended_items: readonly EndedItem[];
}

/** What the books of a generation know: all commodities and payees, and the credit of these accounts. */
export async function readBookState(
  client: Client,
  generation: number,
  accountIds: readonly number[],
): Promise<Pick<BookRows, 'commodities' | 'payees' | 'credit'>> {
  // raw SQL: one prepared statement for three small sets, because every step runs it
  const { rows } = await client.query<Pick<BookRows, 'commodities' | 'payees' | 'credit'>>({
    name: 'read_book_state',
    text: `select
      (select coalesce(json_agg(c order by c.id), '[]') from tollbook.book_commodity c where c.generation = $1) as commodities,
      (select coalesce(json_agg(p order by p.since), '[]') from tollbook.book_payee p where p.generation = $1) as payees,
      (select coalesce(json_agg(json_build_object('account_id', c.account_id, 'granted', c.granted::text, 'bought', c.bought::text)), '[]')
        from tollbook.book_credit c where c.generation = $1 and c.account_id = any ($2::bigint[])) as credit`,
    values: [generation, accountIds],
  });
  return rows[0] ?? { commodities: [], payees: [], credit: [] };
}

/** The booked events up to a place that converted these payments to credit, or took it back. */
export async function readConversions(
  client: Client,
  generation: number,
  quotes: readonly string[],
  lastSeq: number,
): Promise<RecordedEvent[]> {
  if (quotes.length === 0) return [];
  const { rows } = await client.query<{ leaf: string }>({
    name: 'read_conversions',
    text: `select tollbook.leaf_text(event) as leaf from unnest($2::text[]) as wanted(stream)
      cross join lateral (
        select distinct posting.seq from tollbook.posting
        where posting.generation = $1 and posting.quote = tollbook.stream_key(wanted.stream) and posting.seq <= $3 offset 0) booked
      join tollbook.event on event.lane_id = 1 and event.seq = booked.seq`,
    values: [generation, quotes, lastSeq],
  });
  return rows.map(({ leaf }) => decodeLeaf(leaf));
}

/** The sums that the postings of these events have on the debit side of two accounts. */
export async function readDebits(
  client: Client,
  generation: number,
  seqs: readonly number[],
  [one, other]: readonly [string, string],
): Promise<ReadonlyMap<number, readonly [bigint, bigint]>> {
  if (seqs.length === 0) return new Map();
  const { rows } = await client.query<{ seq: number; one: string; other: string }>(
    `select posting.seq, coalesce(sum(atoms) filter (where name = $3), 0)::text as one, coalesce(sum(atoms) filter (where name = $4), 0)::text as other
      from tollbook.posting join tollbook.book_account account on account.generation = posting.generation and account.id = posting.debit
      where posting.generation = $1 and posting.seq = any ($2::bigint[]) group by posting.seq`,
    [generation, seqs, one, other],
  );
  return new Map(rows.map((row) => [row.seq, [BigInt(row.one), BigInt(row.other)]]));
}

/** The postings of a generation within a part of the ledger by names: its parameters are the generation, after, and last `seq`. */
const namedPostings = (generation: string, after: string, last: string): string =>
  `select posting.seq, posting.leg, posting.category, debited.name as debit, credited.name as credit, commodity.key as commodity,
      posting.atoms::text, tollbook.stream_name(posting.quote) as quote
    from tollbook.posting
    left join tollbook.book_account debited on debited.generation = ${generation} and debited.id = posting.debit
    left join tollbook.book_account credited on credited.generation = ${generation} and credited.id = posting.credit
    left join tollbook.book_commodity commodity on commodity.generation = ${generation} and commodity.id = posting.commodity
    where posting.generation = ${generation} and posting.seq > ${after} and posting.seq <= ${last}`;

/** The postings of the events after one up to another, in order. */
export async function readPostings(
  client: Client,
  generation: number,
  afterSeq: number,
  lastSeq: number,
): Promise<PostingRow[]> {
  const { rows } = await client.query<PostingRow>({
    name: 'read_postings',
    text: `${namedPostings('$1', '$2', '$3')} order by posting.seq, posting.leg`,
    values: [generation, afterSeq, lastSeq],
  });
  return rows;
}

/** What an account has of a commodity: debits less credits, as decimal text. */
export interface BalanceRow {
  readonly account: string;
  /** The key of its commodity. */
  readonly commodity: string;
  readonly atoms: string;
}

/**
 * The balances, without those of 0, of a day's first moment and then of the postings of the events after one up to another. `day` is
 * `YYYY-MM-DD` (UTC). Its cost follows the accounts and the days before, not the postings.
 */
export async function readBalances(
  client: Client,
  generation: number,
  day: string,
  afterSeq: number,
  lastSeq: number,
): Promise<BalanceRow[]> {
  const { rows } = await client.query<BalanceRow>(
    `select account.name as account, commodity.key as commodity, sum(debits - credits)::text as atoms
      from (
        select account, commodity, debits, credits from tollbook.balance_day where generation = $1 and day < $2
        union all
        select side.account, posting.commodity, side.debits, side.credits from tollbook.posting
        cross join lateral (values (posting.debit, posting.atoms, 0::numeric), (posting.credit, 0, posting.atoms)) side(account, debits, credits)
        where posting.generation = $1 and posting.seq > $3 and posting.seq <= $4
      ) summed
      join tollbook.book_account account on account.generation = $1 and account.id = summed.account
      join tollbook.book_commodity commodity on commodity.generation = $1 and commodity.id = summed.commodity
      group by 1, 2 having sum(debits) <> sum(credits)`,
    [generation, day, afterSeq, lastSeq],
  );
  return rows;
}

/** The first postings within a part of the ledger that differ from these, or are missing, or belong to no event. */
export async function findWrongPostings(
  { client, generation }: RowSnapshot,
  afterSeq: number,
  lastSeq: number,
  expected: readonly PostingRow[],
): Promise<WrongRow[]> {
  const { rows } = await client.query<WrongRow>(
    `select 'posting' as "table", case when e.seq is not null then to_json(e) end as expected, case when s.seq is not null then to_json(s) end as stored
      from json_to_recordset($4) as e(seq bigint, leg smallint, category text, debit text, credit text, commodity text, atoms text, quote text)
      full join (${namedPostings('$1', '$2', '$3')}) s on s.seq = e.seq and s.leg = e.leg
      where row(e.seq, e.leg, e.category, e.debit, e.credit, e.commodity, e.atoms, e.quote)
        is distinct from row(s.seq, s.leg, s.category, s.debit, s.credit, s.commodity, s.atoms, s.quote) limit 20`,
    [generation, afterSeq, lastSeq, JSON.stringify(expected)],
  );
  return rows;
}

const stateTables = {
  book_commodity: ['id', 'key', 'name', 'tag', 'symbol', 'decimals', 'network', 'asset'],
  book_payee: ['network', 'address', 'since'],
  book_credit: ['account_id', 'granted', 'bought'],
} as const;

/** The first rows that the next step would begin with, and that differ from these, all of them. */
export async function findWrongBookState(
  { client, generation }: RowSnapshot,
  table: keyof typeof stateTables,
  expected: readonly object[],
): Promise<WrongRow[]> {
  const columns: readonly string[] = stateTables[table];
  const of = (row: string): string => columns.map((column) => `${row}.${column}`).join(', ');
  const json = (row: string): string =>
    `json_build_object(${columns.map((column) => `'${column}', ${row}.${column}`).join(', ')})`;
  const key = table === 'book_payee' ? 'network, address' : columns[0];
  const { rows } = await client.query<WrongRow>(
    `select '${table}' as "table", case when e.generation is not null then ${json('e')} end as expected,
        case when s.generation is not null then ${json('s')} end as stored
      from json_populate_recordset(null::tollbook.${table}, $2) e
      full join (select * from tollbook.${table} where generation = $1) s using (${key})
      where row(${of('e')}) is distinct from row(${of('s')}) limit 20`,
    [generation, JSON.stringify(expected.map((row) => ({ generation, ...row })))],
  );
  return rows;
}

/** Days whose balances are not the sums of their postings, and accounts without a posting. */
export async function findWrongBalances({ client, generation }: RowSnapshot): Promise<WrongRow[]> {
  const { rows } = await client.query<WrongRow>(
    `with side as (
        select debit as account, commodity, seq, atoms as debits, 0 as credits from tollbook.posting where generation = $1
        union all select credit, commodity, seq, 0, atoms from tollbook.posting where generation = $1
      ), e as (
        select account, commodity, (event.at at time zone 'UTC')::date as day, sum(debits) as debits, sum(credits) as credits
        from side join tollbook.event on event.lane_id = 1 and event.seq = side.seq group by 1, 2, 3
      ), s as (select account, commodity, day, debits, credits from tollbook.balance_day where generation = $1)
      select 'balance_day' as "table", case when e.account is not null then to_json(e) end as expected,
        case when s.account is not null then to_json(s) end as stored
      from e full join s on (s.account, s.commodity, s.day) = (e.account, e.commodity, e.day)
      where row(e.debits, e.credits) is distinct from row(s.debits, s.credits)
      union all
      select 'book_account', null, json_build_object('id', account.id, 'name', account.name) from tollbook.book_account account
      where account.generation = $1 and not exists (select from side where side.account = account.id)
      limit 20`,
    [generation],
  );
  return rows;
}

/** A posting, a balance of a day or an open item that one of two generations has, and the other one not. */
export interface BookDifference {
  readonly table: 'posting' | 'balance_day' | 'open_item';
  readonly isOfFormer: boolean;
  readonly row: Readonly<Record<string, unknown>>;
}

const comparedAtOnce = 100_000;
const maxDifferences = 20;

/**
 * The first differences between the books of two generations, up to the former's last event: none if they are equal. The former
 * must not change any more. Memory does not grow with the ledger.
 */
export async function compareBooks(
  client: Client,
  former: number,
  rebuilt: number,
): Promise<BookDifference[]> {
  const { rows: ends } = await client.query<{ seq: number }>(
    'select seq from tollbook.projection where generation = $1',
    [former],
  );
  const end = ends[0]?.seq ?? 0;
  const found: BookDifference[] = [];
  const bothWays = (one: string, other: string): string =>
    `(select true as "isOfFormer", to_json(d) as row from (${one} except ${other}) d)
      union all (select false, to_json(d) from (${other} except ${one}) d) limit ${maxDifferences}`;
  const collect = async (table: BookDifference['table'], text: string, values: unknown[]): Promise<void> => {
    const { rows } = await client.query<Omit<BookDifference, 'table'>>(text, values);
    found.push(...rows.map((row) => ({ table, ...row })));
  };
  const postings = bothWays(namedPostings('$1', '$3', '$4'), namedPostings('$2', '$3', '$4'));
  const opened = 'item.opened > $3 and item.opened <= $4';
  const items = bothWays(namedItems('$1', opened, '$5'), namedItems('$2', opened, '$5'));
  for (let after = 0; after < end && found.length < maxDifferences; after += comparedAtOnce) {
    const part = [former, rebuilt, after, Math.min(after + comparedAtOnce, end)];
    await collect('posting', postings, part);
    await collect('open_item', items, [...part, end]);
  }
  await collect('balance_day', bothWays(namedBalances('$1', '$3'), namedBalances('$2', '$3')), [
    former,
    rebuilt,
    end,
  ]);
  return found.slice(0, maxDifferences);
}

/** The sums of days by names, without the postings after an event. */
const namedBalances = (generation: string, last: string): string =>
  `select day, account.name as account, commodity.key as commodity, sum(debits)::text as debits, sum(credits)::text as credits
    from (
      select account, commodity, day, debits, credits from tollbook.balance_day where generation = ${generation}
      union all
      select side.account, posting.commodity, (event.at at time zone 'UTC')::date, -side.debits, -side.credits
      from tollbook.posting
      join tollbook.event on event.lane_id = 1 and event.seq = posting.seq
      cross join lateral (values (posting.debit, posting.atoms, 0::numeric), (posting.credit, 0, posting.atoms)) side(account, debits, credits)
      where posting.generation = ${generation} and posting.seq > ${last}
    ) summed
    left join tollbook.book_account account on account.generation = ${generation} and account.id = summed.account
    left join tollbook.book_commodity commodity on commodity.generation = ${generation} and commodity.id = summed.commodity
    group by 1, 2, 3 having sum(debits) <> 0 or sum(credits) <> 0`;
