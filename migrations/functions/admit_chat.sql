-- Counts one request against the minute of each subject, and where p_of_day is true against its day. The hits are in order also where
-- the clock was set back: tollbook.admit_uncontended searches them.
create or replace function tollbook.count_hit(p_subjects text[], p_today date, p_now_ms bigint, p_of_day boolean) returns void
language sql volatile set search_path = tollbook, pg_temp as $$
  update rate_window set day = p_today,
    day_hits = case when day = p_today then day_hits else 0 end + case when p_of_day then 1 else 0 end,
    hits = array(select hit from unnest(hits || p_now_ms) as hit where abs(hit - p_now_ms) < 60000 order by hit)
    where subject = any (p_subjects)
$$;

-- Admits one completion or refuses it; a refusal charges nothing and is recorded once a minute, and those of all strangers, and of all
-- customers, up to an allowance: `is_summed` says that the gateway counts one beyond it. A request counts against its subject and
-- against all of `others`, or, where one of them is full, against none. With `is_refused` the gateway refuses the request itself: it is
-- only counted. A refusal for lack of credit counts too, against minutes alone. The answer names the limit that
-- binds, of all minutes and of all days: the one that refused, or the one that leaves the least. A hold that may be only a part of what
-- is available is refused where less than `needed` is. Only tollbook.append calls it, under
-- the lane's lock: no other process changes what it reads.
create or replace function tollbook.admit_chat(p_admission json, p_now timestamptz) returns json
language plpgsql volatile set search_path = tollbook, pg_temp as $$
declare
  admission record;
  key_row api_key;
  past record;
  now_ms bigint;
  subjects text[] := '{}';
  bound bigint[];
  per_minute int;
  per_day int;
  remaining_today int;
  today_left_ms bigint;
  refused text;
  retry_ms bigint;
  available bigint;
  refused_at bigint;
  is_recorded boolean;
  is_summed boolean := false;
  is_counted boolean := false;
  wanted record;
  full_subject text;
  period_start date;
  period_spent bigint;
  budget_until timestamptz;
  remaining int;
begin
  select * into admission from json_to_record(p_admission) as a(chat_id uuid, process_id uuid, subject text,
    per_minute int, per_day int, others json, is_refused boolean, refusal_events_per_sec int, key_id bigint, account_id bigint, hold bigint, needed bigint, minimum bigint);
  admission.needed := coalesce(admission.needed, admission.hold);
  now_ms := (extract(epoch from p_now) * 1000)::bigint;
  today_left_ms := (extract(epoch from ((p_now at time zone 'UTC')::date + 1)::timestamp) * 1000)::bigint - now_ms;

  if admission.key_id is not null then
    select api_key.* into key_row from api_key join account using (account_id) where key_id = admission.key_id
      and revoked_at is null and (expires_at is null or expires_at > p_now) and disabled_at is null;
    if not found then refused := 'invalid_api_key'; end if;
    period_start := budget_start(key_row.budget_period, key_row.budget_from, p_now);
    period_spent := case when key_row.budget_from = period_start then key_row.budget_spent else 0 end;
  end if;
  for wanted in select admission.subject, admission.per_minute, admission.per_day
    union all select * from json_to_recordset(coalesce(admission.others, '[]')) as o(subject text, per_minute int, per_day int)
  loop
    past := open_rate_window(wanted.subject, p_now, true);
    subjects := subjects || wanted.subject;
    if cardinality(subjects) = 1 then refused_at := past.refused_at; end if;
    if refused is distinct from 'rate_limit_exceeded' and coalesce(wanted.per_minute - cardinality(past.recent) < remaining, true) then
      per_minute := wanted.per_minute;
      bound := past.recent;
      remaining := per_minute - cardinality(bound);
    end if;
    if refused is distinct from 'daily_quota_exceeded' and coalesce(wanted.per_day - past.today_hits < remaining_today, wanted.per_day is not null) then
      per_day := wanted.per_day;
      remaining_today := per_day - past.today_hits;
    end if;
    continue when refused is not null;
    if past.today_hits >= wanted.per_day then
      refused := 'daily_quota_exceeded';
      retry_ms := today_left_ms;
      full_subject := wanted.subject;
    elsif cardinality(past.recent) >= wanted.per_minute then
      refused := 'rate_limit_exceeded';
      retry_ms := rate_retry_ms(past.recent, wanted.per_minute, now_ms);
      full_subject := wanted.subject;
    end if;
  end loop;
  if refused is null and admission.is_refused then
    refused := 'counted';
    is_counted := true;
  elsif refused is null and admission.hold > 0 then
    select account.balance into available from account where account_id = admission.account_id for update;
    available := coalesce(available, 0);
    if available < admission.needed then
      refused := 'insufficient_funds';
    end if;
    -- the least of what is left decides: a caller that asks again for that much is not refused for another reason
    if key_row.cap - key_row.spent < least(available, admission.needed) then
      refused := 'key_cap_reached';
      available := greatest(key_row.cap - key_row.spent, 0);
    end if;
    if key_row.budget - period_spent < least(available, admission.needed) then
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
    is_counted := is_counted or (available is not null and coalesce(available < admission.minimum, true));
    if is_counted then
      perform count_hit(subjects, past.today, now_ms, refused = 'counted');
      bound := bound || now_ms;
      remaining := remaining - 1;
      if refused = 'counted' then remaining_today := remaining_today - 1; end if;
    end if;
    is_recorded := refused <> 'counted' and abs(now_ms - refused_at) >= 60000 and coalesce(available < admission.minimum, true);
    if is_recorded then
      update rate_window set refused_at = now_ms where subject = admission.subject;
      -- as many at once as tollbook.take_event_allowance and the gateways' memories hold of other kinds
      is_summed := admission.refusal_events_per_sec > 0 and take_event_allowance(
        case when exists (select from account where account_id = admission.account_id and recorded_at is not null)
          then 'customer_chat_refusal' else 'chat_refusal' end,
        1, admission.refusal_events_per_sec, 4 * greatest(50, admission.refusal_events_per_sec)) = 0;
      is_recorded := not is_summed;
    end if;
    return json_build_object('code', refused, 'is_recorded', is_recorded, 'is_summed', is_summed, 'available', available, 'retry_ms', retry_ms,
      'full_subject', full_subject, 'budget_until', to_char(budget_until at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), 'remaining', greatest(remaining, 0),
      'reset_ms', case when refused = 'rate_limit_exceeded' then retry_ms
        else coalesce(bound[greatest(1, 1 + cardinality(bound) - per_minute)] + 60000 - now_ms, 0) end,
      'remaining_today', case when per_day is not null then greatest(remaining_today, 0) end,
      'reset_today_ms', today_left_ms, 'per_minute', per_minute, 'per_day', per_day);
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
  perform count_hit(subjects, past.today, now_ms, true);
  return json_build_object('code', 'ok',
    'remaining', remaining - 1, 'reset_ms', coalesce(bound[1], now_ms) + 60000 - now_ms,
    'remaining_today', remaining_today - 1, 'reset_today_ms', today_left_ms, 'per_minute', per_minute, 'per_day', per_day);
end $$;
