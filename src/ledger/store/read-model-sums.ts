import type { RowSnapshot, WrongRow } from './stored-rows.ts';

/**
 * Sums of other read models that are not the sums of their rows, which are compared with the events: earnings of a day with the
 * payments, payees with the payments, usage of a day with the completions. A sum of nothing may have a row or none.
 */
export async function findWrongSums({ client, generation }: RowSnapshot): Promise<WrongRow[]> {
  const found: WrongRow[] = [];
  for (const text of sums) {
    const { rows } = await client.query<WrongRow>(`${text} limit 20`, [generation]);
    found.push(...rows);
  }
  return found;
}

const sums = [
  `select 'job_day' as "table", to_json(e) as expected, to_json(s) as stored
    from (
      select (settled_at at time zone 'UTC')::date as day, service_id, job_index, network, '0x' || encode(asset, 'hex') as asset,
        array_agg(distinct symbol || ' ' || decimals) as units, count(*) as payments, sum(amount) as amount,
        count(*) filter (where state = 'completed') as completed,
        count(*) filter (where state = 'dead_lettered') as dead_lettered,
        count(*) filter (where state = 'refunded') as refunded,
        sum(refunded_amount) as refunded_amount
      from tollbook.payment
      where generation = $1 and settled_at is not null and service_id is not null group by 1, 2, 3, 4, 5
    ) e full join (select * from tollbook.job_day where generation = $1) s
      on (s.day, s.service_id, s.job_index, s.network, s.asset) = (e.day, e.service_id, e.job_index, e.network, e.asset)
    where (coalesce(e.payments, 0), coalesce(e.amount, 0), coalesce(e.completed, 0), coalesce(e.dead_lettered, 0),
        coalesce(e.refunded, 0), coalesce(e.refunded_amount, 0))
      is distinct from (coalesce(s.payments, 0), coalesce(s.amount, 0), coalesce(s.completed, 0), coalesce(s.dead_lettered, 0),
        coalesce(s.refunded, 0), coalesce(s.refunded_amount, 0))
      or s.symbol || ' ' || s.decimals <> all (e.units)`,
  `select 'payee' as "table", to_json(e) as expected, to_json(s) as stored
    from (
      select network, '0x' || encode(asset, 'hex') as asset, '0x' || encode(pay_to, 'hex') as pay_to,
        array_agg(distinct symbol || ' ' || decimals) as units
      from tollbook.payment where generation = $1 group by 1, 2, 3
    ) e full join (select * from tollbook.payee where generation = $1) s
      on (s.network, s.asset, s.pay_to) = (e.network, e.asset, e.pay_to)
    where e.network is null or s.network is null or s.symbol || ' ' || s.decimals <> all (e.units)`,
  `select 'usage_day' as "table", to_json(e) as expected, to_json(s) as stored
    from (
      select account_id, (at at time zone 'UTC')::date as day, model, key_id,
        count(*) filter (where status not in ('running', 'failed')) as requests, count(*) filter (where status = 'failed') as failed,
        coalesce(sum(prompt_tokens), 0) as prompt_tokens, coalesce(sum(completion_tokens), 0) as completion_tokens,
        coalesce(sum(cached_tokens), 0) as cached_tokens, coalesce(sum(cost), 0) as cost
      from tollbook.completion where generation = $1 group by 1, 2, 3, 4
    ) e full join (select * from tollbook.usage_day where generation = $1) s using (account_id, day, model, key_id)
    where (coalesce(e.requests, 0), coalesce(e.failed, 0), coalesce(e.prompt_tokens, 0), coalesce(e.completion_tokens, 0),
        coalesce(e.cached_tokens, 0), coalesce(e.cost, 0))
      is distinct from (coalesce(s.requests, 0), coalesce(s.failed, 0), coalesce(s.prompt_tokens, 0),
        coalesce(s.completion_tokens, 0), coalesce(s.cached_tokens, 0), coalesce(s.cost, 0))`,
];
