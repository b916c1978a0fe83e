import { type RawBuilder, sql } from 'kysely';
import type pg from 'pg';
import { queriesOn } from '../../ledger/store/database.ts';
import { activeGeneration, type Page } from '../../ledger/store/payments.ts';
import type { UsageRow } from '../../ledger/store/projection.ts';

export const usageDimensions = ['day', 'model', 'key'] as const;
export type UsageDimension = (typeof usageDimensions)[number];

export interface UsageFilters {
  readonly accountId: number;
  /** Days, both included. */
  readonly from: string;
  readonly to: string;
  readonly model?: string | undefined;
  /** 0: of requests without a key. */
  readonly keyId?: number | undefined;
}

/** The place of a row among rows by some dimensions: only those are there. */
export interface UsagePlace {
  readonly day?: string | undefined;
  readonly model?: string | undefined;
  readonly key_id?: number | undefined;
}

type Sums = Pick<
  UsageRow,
  'requests' | 'failed' | 'prompt_tokens' | 'completion_tokens' | 'cached_tokens' | 'cost'
>;

/** Sums of usage. What is not a dimension of the list is null, and so is the name of a key that is not stored any more. */
export interface UsageSums extends Sums {
  readonly day: string | null;
  readonly model: string | null;
  readonly key_id: number | null;
  readonly key_name: string | null;
}

/** The order of a list: the newest day first, then models by name, then keys by id. */
const columns = {
  day: { name: sql.ref('day'), order: sql`usage_day.day desc` },
  model: { name: sql.ref('model'), order: sql`usage_day.model` },
  key: { name: sql.ref('key_id'), order: sql`usage_day.key_id` },
} as const;

/** One account's usage by the given dimensions, after a place. */
export async function listUsage(
  pool: pg.Pool,
  filters: UsageFilters,
  by: readonly UsageDimension[],
  after: UsagePlace | undefined,
  limit: number,
): Promise<Page<UsageSums>> {
  const db = queriesOn(pool);
  const has = (dimension: UsageDimension): boolean => by.includes(dimension);
  const dimensions = usageDimensions.filter(has);
  // by the columns of the table: groups are read in the order of its key, and only as many as a page has
  const order = sql.join(dimensions.map((name) => columns[name].order));
  const groups = dimensions.map((name) => columns[name].name);
  const { rows } = await sql<UsageSums & { readonly as_of_seq: number; readonly requests: string | null }>`
    select projection.seq as as_of_seq, page.*, api_key.name as key_name
    from tollbook.projection left join lateral (
      select ${has('day') ? sql`to_char(day, 'YYYY-MM-DD')` : sql`null`} as day,
        ${has('model') ? sql`model` : sql`null`} as model, ${has('key') ? sql`key_id` : sql`null::bigint`} as key_id,
        ${sums}
      from tollbook.usage_day where ${conditions(filters)} and ${after ? behind(after, dimensions) : sql`true`}
        and generation = (${activeGeneration(db)})
      ${groups.length > 0 ? sql`group by ${sql.join(groups)}` : sql``}
      having count(*) > 0
      order by ${order} limit ${limit}
    ) page on true left join tollbook.api_key on api_key.key_id = page.key_id and api_key.account_id = ${filters.accountId}
    where projection.is_active order by page.day desc, page.model, page.key_id`.execute(db);
  const asOfSeq = rows[0]?.as_of_seq ?? 0;
  return { asOfSeq, rows: rows.filter(({ requests }) => requests !== null).map(toSums) };
}

const sums = sql`sum(requests)::text as requests, sum(failed)::text as failed, sum(prompt_tokens)::text as prompt_tokens,
  sum(completion_tokens)::text as completion_tokens, sum(cached_tokens)::text as cached_tokens, sum(cost)::text as cost`;

function conditions({ accountId, from, to, model, keyId }: UsageFilters): RawBuilder<unknown> {
  const all = [
    sql`account_id = ${accountId}`,
    sql`day between ${from}::date and ${to}::date`,
    ...(model === undefined ? [] : [sql`model = ${model}`]),
    ...(keyId === undefined ? [] : [sql`key_id = ${keyId}`]),
  ];
  return sql.join(all, sql` and `);
}

/** Rows after a place: greater in the first dimension that differs; later days come first. */
function behind(after: UsagePlace, dimensions: readonly UsageDimension[]): RawBuilder<unknown> {
  const comparisons = {
    day: { same: sql`day = ${after.day}::date`, later: sql`day < ${after.day}::date` },
    model: { same: sql`model = ${after.model}`, later: sql`model > ${after.model}` },
    key: { same: sql`key_id = ${after.key_id}`, later: sql`key_id > ${after.key_id}` },
  };
  const ways = dimensions.map((name, at) => {
    const same = dimensions.slice(0, at).map((earlier) => comparisons[earlier].same);
    return sql`(${sql.join([...same, comparisons[name].later], sql` and `)})`;
  });
  return ways.length === 0 ? sql`false` : sql`(${sql.join(ways, sql` or `)})`;
}

function toSums(row: UsageSums): UsageSums {
  const { day, model, key_id, key_name, requests, failed, cost } = row;
  const { prompt_tokens, completion_tokens, cached_tokens } = row;
  const tokens = { prompt_tokens, completion_tokens, cached_tokens };
  return { day, model, key_id, key_name, requests, failed, ...tokens, cost };
}
