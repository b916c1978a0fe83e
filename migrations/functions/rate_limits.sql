-- Locks the window of a subject and returns the admissions of its last minute, in order, and how many it had today, at
-- p_now or, where that is null, at the time the lock was granted. A missing window is created where p_create is true; else
-- `recent` is null. A window that is pruned at the same moment is created anew. Admissions more than a minute ahead are from
-- before the clock was set back: they count no more.
create or replace function tollbook.open_rate_window(p_subject text, p_now timestamptz, p_create boolean,
  out recent bigint[], out today_hits int, out refused_at bigint, out today date, out now_ms bigint)
language plpgsql volatile as $$
declare
  at_time timestamptz;
  found_row tollbook.rate_window;
begin
  loop
    select * into found_row from tollbook.rate_window where subject = p_subject for update;
    exit when found;
    if not p_create then return; end if;
    insert into tollbook.rate_window (subject, hits, day, day_hits)
      values (p_subject, '{}', (coalesce(p_now, tollbook.clock()) at time zone 'UTC')::date, 0) on conflict do nothing;
  end loop;
  at_time := coalesce(p_now, tollbook.clock());
  now_ms := (extract(epoch from at_time) * 1000)::bigint;
  today := (at_time at time zone 'UTC')::date;
  recent := array(select hit from unnest(found_row.hits) as hit where abs(hit - now_ms) < 60000 order by hit);
  today_hits := case when found_row.day = today then found_row.day_hits else 0 end;
  refused_at := found_row.refused_at;
end $$;

-- Milliseconds until a window whose minute is full admits one more.
create or replace function tollbook.rate_retry_ms(p_recent bigint[], p_per_minute int, p_now_ms bigint) returns bigint
language sql immutable as $$
  select p_recent[1 + cardinality(p_recent) - p_per_minute] + 60000 - p_now_ms
$$;

-- Whether a client may present this key: 'known' where it is valid; 'unknown' where it is not, which is counted; 'limited'
-- where too many were not in the last minute. The attempts of one client run one after the other.
create or replace function tollbook.check_api_key(p_subject text, p_per_minute int, p_hash bytea)
returns table (code text, retry_ms bigint)
language plpgsql volatile security definer set search_path = tollbook, pg_temp as $$
declare
  past record;
begin
  past := open_rate_window(p_subject, null, true);
  if cardinality(past.recent) >= p_per_minute then
    return query select 'limited', rate_retry_ms(past.recent, p_per_minute, past.now_ms);
  elsif exists (select from api_key join account using (account_id)
    where hash = p_hash and revoked_at is null and (expires_at is null or expires_at > clock()) and disabled_at is null) then
    return query select 'known', null::bigint;
  else
    update rate_window set hits = past.recent || past.now_ms, day = past.today where subject = p_subject;
    return query select 'unknown', null::bigint;
  end if;
end $$;

-- Counts one attempt against each of the subjects, or against none where one of them has used up its minute, or its day of UTC where it has
-- one: then returns after how long that ends, and whether this is the first refusal of this minute.
create or replace function tollbook.count_attempts(p_subjects text[], p_per_minute int[], p_per_day int[] default null,
  out retry_ms bigint, out is_first_refusal boolean)
language plpgsql volatile security definer set search_path = tollbook, pg_temp as $$
declare
  at_time timestamptz := clock();
  now_ms bigint := (extract(epoch from at_time) * 1000)::bigint;
  wanted record;
  past record;
  used_up text[] := '{}';
begin
  retry_ms := 0;
  is_first_refusal := false;
  -- always in the same order: two calls that lock the same windows cannot deadlock
  for wanted in select * from unnest(p_subjects, p_per_minute, p_per_day) as t(subject, per_minute, per_day) order by t.subject collate "C" loop
    past := open_rate_window(wanted.subject, at_time, true);
    if cardinality(past.recent) >= wanted.per_minute then
      used_up := used_up || wanted.subject;
      retry_ms := greatest(retry_ms, rate_retry_ms(past.recent, wanted.per_minute, now_ms), 1);
    end if;
    if past.today_hits >= wanted.per_day then
      used_up := used_up || wanted.subject;
      retry_ms := greatest(retry_ms, 86400000 - now_ms % 86400000);
    end if;
  end loop;
  if retry_ms > 0 then
    update rate_window set refused_at = now_ms / 60000 where subject = any (used_up) and refused_at <> now_ms / 60000;
    is_first_refusal := found;
    -- a client that goes on under ever new names leaves no rows
    delete from rate_window where subject = any (p_subjects) and hits = '{}' and day_hits = 0;
  else
    update rate_window set day = (at_time at time zone 'UTC')::date,
      day_hits = case when day = (at_time at time zone 'UTC')::date then day_hits else 0 end + 1,
      hits = array(select hit from unnest(hits) as hit where abs(hit - now_ms) < 60000) || now_ms
      where subject = any (p_subjects);
  end if;
end $$;

-- Counts one failed authentication of a client where p_counts is true. False where it had too many in the last minute.
create or replace function tollbook.count_auth_failure(p_subject text, p_per_minute int, p_counts boolean) returns boolean
language plpgsql volatile security definer set search_path = tollbook, pg_temp as $$
declare
  past record;
begin
  past := open_rate_window(p_subject, null, p_counts);
  if p_counts then
    update rate_window set day = past.today,
      hits = (past.recent || past.now_ms)[greatest(1, cardinality(past.recent) + 2 - p_per_minute):]
      where subject = p_subject;
  end if;
  return coalesce(cardinality(past.recent), 0) < p_per_minute;
end $$;

grant execute on function tollbook.check_api_key, tollbook.count_attempts, tollbook.count_auth_failure to tollbook_writer;
