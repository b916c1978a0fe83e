-- The first day of the period of a key's budget at p_now; null without a budget. A clock that was set back over midnight by less than
-- a day continues the period that had begun: else the key would have its budget twice.
create or replace function tollbook.budget_start(p_period text, p_known date, p_now timestamptz) returns date
language sql immutable as $$
  select case when p_known = date_trunc(p_period, (p_now + interval '24 hours') at time zone 'UTC')::date then p_known
    else date_trunc(p_period, p_now at time zone 'UTC')::date end
$$;

-- When the period that begins on p_start ends, and the budget starts anew.
create or replace function tollbook.budget_end(p_period text, p_start date) returns timestamptz
language sql immutable as $$
  select (p_start + ('1 ' || p_period)::interval) at time zone 'UTC'
$$;

-- Queues a message for the owners of these keys whose budget is used up to another of the parts 50, 80 and 100 percent: of several at
-- once the highest alone, each once a period. A refused request tells that the rest of a budget is too little, once 80 percent are used.
-- Written with the settlement or refusal itself, so that no crash loses it. Accounts without a user have no owner to tell.
create or replace function tollbook.tell_budgets(p_keys bigint[], p_is_refused boolean, p_now timestamptz) returns void
language sql volatile set search_path = tollbook, pg_temp as $$
  with reached as (
    select key_id, case when budget_used >= budget or p_is_refused and budget_used * 100 >= budget * 80 then 100
      when budget_used * 100 >= budget * 80 then 80 when budget_used * 100 >= budget * 50 then 50 else 0 end as percent
    from api_key where key_id = any (p_keys) and budget is not null
  ), told as (
    update api_key set budget_told = percent from reached
    where api_key.key_id = reached.key_id and percent > budget_told
    returning account_id, api_key.key_id, percent, budget_used, budget, budget_period, budget_from
  )
  insert into task (kind, queue, key, created_at, ok_at, due_at, payload)
  select 'budget_message', channel, gen_random_uuid()::text, p_now, p_now, p_now,
    json_build_object('account_id', account_id, 'key_id', key_id, 'percent', percent, 'used', budget_used, 'budget', budget,
      'budget_period', budget_period, 'budget_from', budget_from)
  from told join account using (account_id) cross join (values ('mail'), ('webhook')) as by(channel)
  where starts_with(account.name, 'user:') and closed_at is null
$$;

-- Takes up to p_max messages of a channel that are due, with the webhook and the names of this moment: those of each account in turn, and at
-- most two of one, whose receiver may never answer; the least tried ones first. Where the process ends while it sends them they are due
-- again after five minutes, longer than sending takes, so that no other process sends them meanwhile. After three days they are given up.
create or replace function tollbook.take_budget_messages(p_channel text, p_max int)
returns table (message_id bigint, account_id bigint, account text, key_id bigint, key_name text, percent int, used bigint, budget bigint,
  budget_period text, budget_from date, until timestamptz, tries int, url text, secret text, created_at timestamptz)
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  delete from task where kind = 'budget_message' and queue = p_channel and created_at < clock() - interval '3 days';
  with first as materialized (
    select task_id, takes, payload ->> 'account_id' as owner from task
    where kind = 'budget_message' and queue = p_channel
      -- a time of the future is from before the clock went back
      and (due_at <= clock() or coalesce(taken_at, created_at) > clock())
    order by takes, task_id limit 1000
  ), shared as materialized (
    select first.*, row_number() over (partition by owner order by takes, task_id) as turn from first
  ), due as materialized (
    select task.task_id from shared join task on task.task_id = shared.task_id
    -- another process may have taken it meanwhile
    where shared.turn <= 2 and task.takes = shared.takes
    order by shared.turn, shared.takes, shared.task_id limit p_max for update of task skip locked
  ), taken as (
    update task set takes = takes + 1, taken_at = clock(), due_at = clock() + interval '5 minutes'
    from due where task.task_id = due.task_id
    returning task.task_id, task.payload, task.takes as tries, task.created_at
  )
  select taken.task_id, told.account_id, account.name, told.key_id, api_key.name, told.percent, told.used, told.budget,
    told.budget_period, told.budget_from, budget_end(told.budget_period, told.budget_from), taken.tries, hook.url, hook.secret,
    taken.created_at
  from taken
  cross join lateral json_to_record(taken.payload) as told(account_id bigint, key_id bigint, percent int, used bigint, budget bigint,
    budget_period text, budget_from date)
  join account using (account_id) left join api_key on api_key.key_id = told.key_id
  left join account_webhook hook on hook.account_id = told.account_id
$$;

-- Sets the webhook of an account, or ends it where p_url is null.
create or replace function tollbook.set_account_webhook(p_account_id bigint, p_url text, p_secret text) returns void
language plpgsql volatile security definer set search_path = tollbook, pg_temp as $$
begin
  delete from account_webhook where account_id = p_account_id;
  if p_url is null then return; end if;
  insert into account_webhook values (p_account_id, p_url, p_secret, clock())
    on conflict (account_id) do update set url = excluded.url, secret = excluded.secret, created_at = excluded.created_at;
end $$;

grant execute on function tollbook.budget_start, tollbook.budget_end, tollbook.take_budget_messages, tollbook.set_account_webhook to tollbook_writer;
