import type pg from 'pg';
import type { RowSnapshot, WrongRow } from './stored-rows.ts';

type Client = Pick<pg.Pool, 'query'>;

/** An open item as it was from one event on, by names: `account` null is a settlement, `closed` null is how it is now. */
export interface NamedItem {
  readonly opened: number;
  readonly closed: number | null;
  readonly account: string | null;
  /** The key of its commodity. */
  readonly commodity: string;
  readonly name: string;
  readonly counterparty: string | null;
  /** What was added and is left, as JSON: lists of a time, atoms, and the quote of a top-up. */
  readonly lots: string;
  readonly taken: string | null;
}

/** The same as a step writes it: the account is a place from 1 in the step's list, or 0. */
export interface GivenItem extends Omit<NamedItem, 'account' | 'commodity' | 'lots' | 'taken'> {
  readonly account: number;
  readonly commodity: number;
  readonly lots: unknown;
  readonly taken: unknown;
}

/** The end of a version that an earlier step has written. */
export interface EndedItem {
  readonly account: number;
  readonly opened: number;
  readonly closed: number;
  readonly commodity: number;
}

/** A stored version, with the ids of its account and commodity. */
export interface StoredItem extends Omit<NamedItem, 'account' | 'commodity'> {
  readonly account: number;
  readonly accountName: string | null;
  readonly commodity: number;
}

const storedItem = `item.opened, item.closed, item.account, account.name as "accountName", item.commodity,
  tollbook.stream_name(item.name) as name, item.counterparty, item.lots::text, item.taken::text`;
const withAccount =
  'left join tollbook.book_account account on account.generation = item.generation and account.id = item.account';

/** What is open at present, or was used up, under these names. */
export async function readPresentItems(
  client: Client,
  generation: number,
  names: readonly string[],
): Promise<StoredItem[]> {
  if (names.length === 0) return [];
  const { rows } = await client.query<StoredItem>({
    name: 'read_present_items',
    text: `select ${storedItem} from unnest($2::text[]) as wanted(name)
      cross join lateral (
        select * from tollbook.open_item
        where open_item.generation = $1 and open_item.name = tollbook.stream_key(wanted.name) and open_item.closed is null offset 0) item
      ${withAccount}`,
    values: [generation, names],
  });
  return rows;
}

/** What was open after an event: of that moment, also where it was closed since. */
export async function readItemsAt(
  { client, generation }: Pick<RowSnapshot, 'client' | 'generation'>,
  seq: number,
): Promise<StoredItem[]> {
  const { rows } = await client.query<StoredItem>(
    `select ${storedItem} from (
        select * from tollbook.open_item where generation = $1 and closed is null and opened <= $2
        union all
        select * from tollbook.open_item where generation = $1 and closed > $2 and opened <= $2) item
      ${withAccount} where item.lots::text <> '[]'`,
    [generation, seq],
  );
  return rows;
}

/** The names of credit accounts, by the names of their items. */
export async function readAccountNames(
  client: Client,
  generation: number,
): Promise<ReadonlyMap<string, string>> {
  const { rows } = await client.query<{ id: number; name: string }>(
    'select account_id as id, name from tollbook.account_credit where generation = $1 and name is not null',
    [generation],
  );
  return new Map(rows.map(({ id, name }) => [`account:${id}`, name]));
}

/** The versions of a generation that a condition on `item` selects, by names. `closed` is null where it is after `$last`. */
export const namedItems = (generation: string, condition: string, last: string): string =>
  `select item.opened, case when item.closed <= ${last} then item.closed end as closed, account.name as account,
      coalesce(commodity.key, '') as commodity, tollbook.stream_name(item.name) as name, item.counterparty, item.lots::text, item.taken::text
    from tollbook.open_item item ${withAccount}
    left join tollbook.book_commodity commodity on commodity.generation = item.generation and commodity.id = item.commodity
    where item.generation = ${generation} and ${condition}`;

/** Which versions are compared: those that ended after an event and up to another one, or all others. */
export type ComparedItems =
  | { readonly afterSeq: number; readonly lastSeq: number }
  | { readonly exceptUpTo: number };

/** The first versions that differ from these, or are missing, or belong to no event. */
export async function findWrongItems(
  { client, generation }: RowSnapshot,
  compared: ComparedItems,
  expected: readonly NamedItem[],
): Promise<WrongRow[]> {
  const isPart = 'lastSeq' in compared;
  const condition = isPart
    ? 'item.closed > $3 and item.closed <= $4'
    : '(item.closed is null or item.closed <= $3 or item.closed > $4)';
  const [first, last] = isPart ? [compared.afterSeq, compared.lastSeq] : [0, compared.exceptUpTo];
  const columns = ['opened', 'closed', 'account', 'commodity', 'name', 'counterparty', 'lots', 'taken'];
  const of = (row: string): string => columns.map((column) => `${row}.${column}`).join(', ');
  const { rows } = await client.query<WrongRow>(
    `select 'open_item' as "table", case when e.opened is not null then to_json(e) end as expected,
        case when s.opened is not null then to_json(s) end as stored
      from json_to_recordset($2) as e(opened bigint, closed bigint, account text, commodity text, name text, counterparty text,
        lots text, taken text)
      full join (${namedItems('$1', condition, '9223372036854775807')}) s
        on s.opened = e.opened and s.commodity = e.commodity and coalesce(s.account, '') = coalesce(e.account, '')
      where row(${of('e')}) is distinct from row(${of('s')}) limit 20`,
    [generation, JSON.stringify(expected), first, last],
  );
  return rows;
}
