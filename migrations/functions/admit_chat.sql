-- Counts one request against the minute of each subject, and where p_admitted is true against its day.
create or replace function tollbook.count_hit(p_subjects text[], p_today date, p_now_ms bigint, p_admitted boolean) returns void
language sql volatile set search_path = tollbook, pg_temp as $$
  update rate_window set day = p_today,
    day_hits = case when day = p_today then day_hits else 0 end + case when p_admitted then 1 else 0 end,
    hits = array(select hit from unnest(hits || p_now_ms) as hit where abs(hit - p_now_ms) < 60000 order by hit)
    where subject = any (p_subjects)
$$;

-- Admits one completion or refuses it; a refusal charges nothing and is recorded once a minute. It counts against its subject and
-- against all of `others`, or, where one of them is full, against none. With `is_refused` the gateway refuses the request itself: it is
-- only counted. With `counts_requests` a refusal for lack of credit counts too, against minutes alone. Only tollbook.append calls
-- it, under the lane's lock: no other process changes what it reads.
create or replace function tollbook.admit_chat(p_admission json, p_now timestamptz) returns json
language plpgsql volatile set search_path = tollbook, pg_temp as $$
declare
  admission record;
  key_row api_key;
  past record;
  now_ms bigint;
  recent bigint[];
  today_left_ms bigint;
  refused text;
  retry_ms bigint;
  available bigint;
  is_recorded boolean;
  is_counted boolean := false;
  other record;
  other_past record;
  full_subject text;
  period_start date;
  period_spent bigint;
  budget_until timestamptz;
  remaining int;
begin
  select * into admission from json_to_record(p_admission) as a(chat_id uuid, process_id uuid, subject text,
    per_minute int, per_day int, others json, counts_requests boolean, is_refused boolean, key_id bigint, account_id bigint, hold bigint, minimum bigint);
  past := open_rate_window(admission.subject, p_now, true);
  now_ms := past.now_ms;
  recent := past.recent;
  today_left_ms := (extract(epoch from (past.today + 1)::timestamp) * 1000)::bigint - now_ms;

  if admission.key_id is not null then
    select api_key.* into key_row from api_key join account using (account_id) where key_id = admission.key_id
      and revoked_at is null and (expires_at is null or expires_at > p_now) and disabled_at is null;
    if not found then refused := 'invalid_api_key'; end if;
    period_start := budget_start(key_row.budget_period, key_row.budget_from, p_now);
    period_spent := case when key_row.budget_from = period_start then key_row.budget_spent else 0 end;
  end if;
  remaining := admission.per_minute - cardinality(recent);
  if refused is null and past.today_hits >= admission.per_day then
    refused := 'daily_quota_exceeded';
    retry_ms := today_left_ms;
    full_subject := admission.subject;
  elsif refused is null and cardinality(recent) >= admission.per_minute then
    refused := 'rate_limit_exceeded';
    retry_ms := rate_retry_ms(recent, admission.per_minute, now_ms);
    full_subject := admission.subject;
  end if;
  for other in select * from json_to_recordset(coalesce(admission.others, '[]')) as o(subject text, per_minute int, per_day int) loop
    other_past := open_rate_window(other.subject, p_now, true);
    remaining := least(remaining, other.per_minute - cardinality(other_past.recent));
    continue when refused is not null;
    if other_past.today_hits >= other.per_day then
      refused := 'daily_quota_exceeded';
      retry_ms := today_left_ms;
      full_subject := other.subject;
    elsif cardinality(other_past.recent) >= other.per_minute then
      refused := 'rate_limit_exceeded';
      retry_ms := rate_retry_ms(other_past.recent, other.per_minute, now_ms);
      full_subject := other.subject;
    end if;
  end loop;
  if refused is null and admission.is_refused then
    refused := 'counted';
    is_counted := true;
  elsif refused is null and admission.hold > 0 then
    select account.balance into available from account where account_id = admission.account_id for update;
    available := coalesce(available, 0);
    if available < admission.hold then
      refused := 'insufficient_funds';
    end if;
    -- the least of what is left decides: a caller that asks again for that much is not refused for another reason
    if key_row.cap - key_row.spent < least(available, admission.hold) then
      refused := 'key_cap_reached';
      available := greatest(key_row.cap - key_row.spent, 0);
    end if;
    if key_row.budget - period_spent < least(available, admission.hold) then
      refused := 'key_budget_reached';
      available := greatest(key_row.budget - period_spent, 0);
      budget_until := budget_end(key_row.budget_period, period_start);
    end if;
    if refused is null then available := null; end if;
    if refused = 'key_budget_reached' and key_row.budget_from = period_start and coalesce(available < admission.minimum, true) then
      perform tell_budgets(array[admission.key_id], true, p_now);
    end if;
  end if;
  if refused is not null then
    -- a caller that has at least the minimum asks again for less: that refusal is not recorded
    is_counted := is_counted or (available is not null and admission.counts_requests is true and coalesce(available < admission.minimum, true));
    if is_counted then
      perform count_hit(array(select admission.subject union all
        select o.subject from json_to_recordset(coalesce(admission.others, '[]')) as o(subject text)), past.today, now_ms, false);
      recent := recent || now_ms;
      remaining := remaining - 1;
    end if;
    is_recorded := refused <> 'counted' and abs(now_ms - past.refused_at) >= 60000 and coalesce(available < admission.minimum, true);
    if is_recorded then update rate_window set refused_at = now_ms where subject = admission.subject; end if;
    return json_build_object('code', refused, 'is_recorded', is_recorded, 'available', available, 'retry_ms', retry_ms,
      'full_subject', full_subject, 'budget_until', to_char(budget_until at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), 'remaining', greatest(remaining, 0),
      'reset_ms', case when refused = 'rate_limit_exceeded' then retry_ms
        else coalesce(recent[greatest(1, 1 + cardinality(recent) - admission.per_minute)] + 60000 - now_ms, 0) end,
      'remaining_today', case when admission.per_day is not null then greatest(admission.per_day - past.today_hits, 0) end,
      'reset_today_ms', today_left_ms);
  end if;

  if admission.hold > 0 then
    update account set balance = balance - admission.hold, held = held + admission.hold where account_id = admission.account_id;
    insert into chat_hold (chat_id, account_id, key_id, amount, process_id, budget_from, created_at)
      values (admission.chat_id, admission.account_id, admission.key_id, admission.hold, admission.process_id, period_start, p_now);
  end if;
  if admission.key_id is not null
    and (admission.hold > 0 or key_row.last_used_at is null or key_row.last_used_at < p_now - interval '1 minute') then
    update api_key set spent = spent + admission.hold, last_used_at = p_now, budget_from = period_start,
      budget_spent = case when period_start is null then 0 else period_spent + admission.hold end,
      budget_used = case when key_row.budget_from = period_start then key_row.budget_used else 0 end,
      budget_told = case when key_row.budget_from = period_start then key_row.budget_told else 0 end
      where key_id = admission.key_id;
  end if;
  -- in order also where the clock was set back: tollbook.admit_uncontended searches it
  update rate_window set hits = array(select hit from unnest(recent || now_ms) as hit order by hit), day = past.today, day_hits = past.today_hits + 1
    where subject = admission.subject;
  if admission.others is not null then
    perform count_hit(array(select o.subject from json_to_recordset(admission.others) as o(subject text)), past.today, now_ms, true);
  end if;
  return json_build_object('code', 'ok',
    'remaining', remaining - 1, 'reset_ms', coalesce(recent[1], now_ms) + 60000 - now_ms,
    'remaining_today', admission.per_day - past.today_hits - 1, 'reset_today_ms', today_left_ms);
end $$;
