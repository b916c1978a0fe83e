-- The chats' part of tollbook.append_uncontended, which calls these under the lane's lock: admissions that fit all their limits and their
-- credit, and settlements of holds that are there. Every rule about limits and credit is also in admit_chat and settle_chat, which
-- decide what these leave: a test sends the same batches both ways.

-- Admits completions, or returns null, with nothing changed, where one does not fit its limits or credit, its key is not valid, or a
-- window has to be created or repaired first. Several admissions of a batch may share a window, an account or a key. Else
-- returns for each, in order, what is left of the minute and of the day that bind it: [remaining, reset_ms, remaining_today,
-- reset_today_ms, per_minute, per_day].
-- An item has the chat, the process, the account, the key, the hold, and for each window, its own first: subject, per_minute, per_day;
-- and last, if more than the hold must be available, how much.
create or replace function tollbook.admit_uncontended(p_admitted text, p_moment timestamptz) returns text
language plpgsql volatile set search_path = tollbook, pg_temp as $$
declare
  items constant text[] := string_to_array(p_admitted, U&'\001F');
  today constant date := (p_moment at time zone 'UTC')::date;
  now_ms constant bigint := (extract(epoch from p_moment) * 1000)::bigint;
  today_left_ms constant bigint := (extract(epoch from (today + 1)::timestamp) * 1000)::bigint - now_ms;
  subjects text[];
  are_admitted boolean;
  limits text;
begin
  -- Hits are in order, so a search finds how many of them have left the minute. Where the clock was set back, the last one is ahead
  -- of it. A window of yesterday or today is not pruned before it is written below.
  select bool_and(one.fits), string_agg(format('[%s,%s,%s,%s,%s,%s]', one.least[1] - 1, one.least[4],
    coalesce((one.least_today[1] - 1)::text, 'null'), today_left_ms, one.least[3], coalesce(one.least_today[3]::text, 'null')), ',' order by one.n)
  into are_admitted, limits
  from (
    select n, bool_and(coalesce(left_now > 0, false) and coalesce(left_today > 0, true)) as fits,
      min(array[left_now, pos, per_minute, reset_ms]) as least,
      min(array[left_today, pos, per_day]) filter (where per_day is not null) as least_today
    from (
      select wanted.n, wanted.pos, wanted.per_minute, wanted.per_day,
        wanted.per_minute - cardinality(known.hits) + known.gone - wanted.before as left_now,
        wanted.per_day - case when known.day = today then known.day_hits else 0 end - wanted.before as left_today,
        coalesce(known.hits[known.gone + 1], now_ms) + 60000 - now_ms as reset_ms
      from (
        select n, pos, f[pos] as subject, f[pos + 1]::int as per_minute, nullif(f[pos + 2], '')::int as per_day,
          row_number() over (partition by f[pos] order by n) - 1 as before
        from (
          select n, string_to_array(item, U&'\001E') as f from unnest(items) with ordinality as i(item, n) offset 0
        ) item cross join lateral generate_series(6, cardinality(f) - 2, 3) as pos
      ) wanted
      left join lateral (
        select hits, day, day_hits, width_bucket(now_ms - 60000, hits) as gone from rate_window
        where rate_window.subject = wanted.subject and day between today - 1 and today
          and coalesce(hits[cardinality(hits)] <= now_ms, true)
      ) known on true
    ) left_of group by n
  ) one;
  if are_admitted is not true then return null; end if;

  -- what an admission needs beyond its hold must be left after all of the batch
  perform from (
    select account_id, key_id, hold, sum(hold) over (partition by account_id) as of_account, sum(hold) over (partition by key_id) as of_key,
      greatest(needed - hold, 0) as beyond
    from (
      select f[3]::bigint as account_id, f[4]::bigint as key_id, f[5]::bigint as hold,
        case when cardinality(f) % 3 = 0 then f[cardinality(f)]::bigint end as needed
      from (
        select array_replace(string_to_array(item, U&'\001E'), '', null) as f from unnest(items) as item offset 0
      ) item
    ) each
  ) wanted
  left join account using (account_id) left join api_key on api_key.key_id = wanted.key_id
  where wanted.hold > 0 and (account.balance >= wanted.of_account + beyond) is not true
    or wanted.key_id is not null and (api_key.account_id = wanted.account_id and account.disabled_at is null
      and api_key.revoked_at is null and (api_key.expires_at is null or api_key.expires_at > p_moment)
      and (api_key.cap is null or wanted.hold = 0 or api_key.spent + wanted.of_key + beyond <= api_key.cap)
      and (api_key.budget is null or wanted.hold = 0 or wanted.of_key + beyond <= api_key.budget - case
        when api_key.budget_from = budget_start(api_key.budget_period, api_key.budget_from, p_moment) then api_key.budget_spent
        else 0 end)) is not true;
  if found then return null; end if;

  -- from here on it writes
  with wanted as materialized (
    select f[1]::uuid as chat_id, f[2]::uuid as process_id, f[3]::bigint as account_id, f[4]::bigint as key_id, f[5]::bigint as hold
    from (
      select array_replace(string_to_array(item, U&'\001E'), '', null) as f from unnest(items) as item offset 0
    ) item
  ), held as (
    insert into chat_hold (chat_id, account_id, key_id, amount, process_id, budget_from, created_at)
    select wanted.chat_id, wanted.account_id, wanted.key_id, wanted.hold, wanted.process_id,
      budget_start(api_key.budget_period, api_key.budget_from, p_moment), p_moment
    from wanted left join api_key on api_key.key_id = wanted.key_id where wanted.hold > 0
  ), used as (
    update api_key set spent = api_key.spent + each.hold, last_used_at = p_moment, budget_from = period.start,
      budget_spent = case when api_key.budget_from = period.start then api_key.budget_spent else 0 end
        + case when period.start is null then 0 else each.hold end,
      budget_used = case when api_key.budget_from = period.start then api_key.budget_used else 0 end,
      budget_told = case when api_key.budget_from = period.start then api_key.budget_told else 0 end
    from (select key_id, sum(hold) as hold from wanted where key_id is not null group by key_id) each
    join api_key known using (key_id)
    cross join lateral (select budget_start(known.budget_period, known.budget_from, p_moment) as start) period
    where api_key.key_id = each.key_id
      and (each.hold > 0 or api_key.last_used_at is null or api_key.last_used_at < p_moment - interval '1 minute')
  )
  update account set balance = balance - each.hold, held = held + each.hold
  from (select account_id, sum(hold) as hold from wanted where hold > 0 group by account_id) each
  where account.account_id = each.account_id;

  update rate_window set
    hits = hits[width_bucket(now_ms - 60000, hits) + 1:] || array_fill(now_ms, array[each.n]),
    day = today, day_hits = case when day = today then day_hits else 0 end + each.n
  from (
    select f[pos] as subject, count(*)::int as n
    from (select string_to_array(item, U&'\001E') as f from unnest(items) as item offset 0) item
    cross join lateral generate_series(6, cardinality(f) - 2, 3) as pos group by f[pos]
  ) each where rate_window.subject = each.subject;
  return limits;
end $$;

-- Whether the holds that these settlements end are there, with their amounts. Under the lane's lock they stay until they are ended. An
-- item has the chat, what is captured, and what is released.
create or replace function tollbook.are_held(p_settled text) returns boolean
language plpgsql volatile set search_path = tollbook, pg_temp as $$
begin
  perform from (
    select string_to_array(item, U&'\001E') as f from unnest(string_to_array(p_settled, U&'\001F')) as item offset 0
  ) wanted left join chat_hold on chat_hold.chat_id = f[1]::uuid
  where (chat_hold.amount = f[2]::bigint + f[3]::bigint) is not true;
  return not found;
end $$;

-- Ends holds that are there, as their own processes do.
create or replace function tollbook.settle_uncontended(p_settled text, p_now timestamptz) returns void
language plpgsql volatile set search_path = tollbook, pg_temp as $$
declare
  budgeted bigint[];
begin
  with ended as (
    delete from chat_hold using (
      select f[1]::uuid as chat_id, f[2]::bigint as captured, f[3]::bigint as released
      from (
        select string_to_array(item, U&'\001E') as f from unnest(string_to_array(p_settled, U&'\001F')) as item offset 0
      ) item
    ) wanted where chat_hold.chat_id = wanted.chat_id
    returning chat_hold.account_id, chat_hold.key_id, chat_hold.budget_from, wanted.captured, wanted.released
  ), given_back as (
    -- at least 0: a clock that was more than a day ahead may have made this period begin anew since the hold
    update api_key set spent = api_key.spent - each.released, budget_spent = greatest(api_key.budget_spent - each.returned, 0),
      budget_used = api_key.budget_used + each.used
    from (
      select ended.key_id, sum(ended.released) as released,
        -- a hold of an earlier period changes nothing in this one
        coalesce(sum(ended.released) filter (where ended.budget_from = known.budget_from), 0) as returned,
        coalesce(sum(ended.captured) filter (where ended.budget_from = known.budget_from), 0) as used
      from ended join api_key known using (key_id) group by ended.key_id
    ) each
    where api_key.key_id = each.key_id and (each.released > 0 or each.used > 0)
  ), moved as (
    update account set held = held - each.captured - each.released, balance = balance + each.released, used = used + each.captured
    from (select account_id, sum(captured) as captured, sum(released) as released from ended group by account_id) each
    where account.account_id = each.account_id
  )
  select array_agg(distinct key_id) into budgeted from ended where budget_from is not null and captured > 0;
  if budgeted is not null then perform tell_budgets(budgeted, false, p_now); end if;
end $$;
