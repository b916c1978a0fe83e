-- Where a schedule goes on: after handled_until, up to now. It begins now where it is seen for the first time, where another schedule of the trigger
-- was followed instead of it for more than a minute, and where the clock went back behind it.
create or replace function tollbook.begin_cron_look(p_name text, p_terms bytea)
returns table (handled_until timestamptz, seen_until timestamptz)
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  insert into cron_cursor as known (trigger_name, terms, handled_until, seen_at)
  select p_name, p_terms, now, now from clock() as now
  on conflict (trigger_name, terms) do update set
    seen_at = excluded.seen_at,
    handled_until = case
      when exists (select from cron_cursor other
        where other.trigger_name = known.trigger_name and other.terms <> known.terms
          -- a time of the future is from before the clock went back
          and other.seen_at > known.seen_at + interval '1 minute' and other.seen_at <= excluded.seen_at)
        then excluded.handled_until
      else least(known.handled_until, excluded.handled_until) end
  returning known.handled_until, known.seen_at
$$;

-- Moves a schedule on, never back. Not to a time that is to come: the clock went back meanwhile, and others look from where it is now. Schedules of a trigger that nobody has followed for a month are deleted.
create or replace function tollbook.end_cron_look(p_name text, p_terms bytea, p_until timestamptz) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  update cron_cursor set handled_until = greatest(handled_until, p_until)
    where trigger_name = p_name and terms = p_terms and p_until <= clock();
  delete from cron_cursor where trigger_name = p_name and terms <> p_terms and seen_at < clock() - interval '30 days';
$$;

-- Begins the next look of a trigger at its chain, if it is due: no other gateway begins one for p_lease_ms. No row where it is not due.
-- A trigger that is configured anew goes on where the last one of its name was on this network.
create or replace function tollbook.begin_chain_look(p_name text, p_network text, p_terms bytea, p_lease_ms int)
returns table (look bigint, reached json, earlier json)
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  insert into chain_cursor as known (trigger_name, network, terms, look, begun_at, due_at, ok_at)
  select p_name, p_network, p_terms, 1, now, now + p_lease_ms * interval '1 millisecond', now from clock() as now
  on conflict (trigger_name, network, terms) do update
    set look = known.look + 1, begun_at = excluded.begun_at, due_at = excluded.due_at
    -- a look of the future is from before the clock went back
    where known.due_at <= excluded.begun_at or known.begun_at > excluded.begun_at
  returning known.look, known.reached, (select other.reached from chain_cursor other
    where other.trigger_name = known.trigger_name and other.network = known.network and other.terms <> known.terms
      and other.reached is not null
    order by other.ok_at desc limit 1)
$$;

-- A gateway still looks: no other one begins a look for p_lease_ms. False where another one has.
create or replace function tollbook.renew_chain_look(p_name text, p_network text, p_terms bytea, p_look bigint, p_lease_ms int) returns boolean
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with renewed as (
    update chain_cursor set due_at = clock() + p_lease_ms * interval '1 millisecond'
    where trigger_name = p_name and network = p_network and terms = p_terms and look = p_look returning 1)
  select exists (select from renewed)
$$;

-- Notes how far a look has come: the next one may begin in p_due_ms. False where another gateway has begun the next one meanwhile: then
-- nothing changes. Cursors that nobody has moved for a month are deleted where their trigger has another one.
create or replace function tollbook.move_chain_cursor(p_name text, p_network text, p_terms bytea, p_look bigint, p_due_ms int,
  p_reached json, p_head numeric, p_problem text) returns boolean
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  delete from chain_cursor where trigger_name = p_name and network = p_network and terms <> p_terms
    and begun_at < clock() - interval '30 days';
  with moved as (
    update chain_cursor set due_at = clock() + p_due_ms * interval '1 millisecond', reached = p_reached, problem = p_problem,
      head = case when p_problem is null then p_head else head end, ok_at = case when p_problem is null then clock() else ok_at end
    where trigger_name = p_name and network = p_network and terms = p_terms and look = p_look returning 1)
  select exists (select from moved)
$$;

grant execute on function tollbook.begin_cron_look, tollbook.end_cron_look, tollbook.begin_chain_look,
  tollbook.renew_chain_look, tollbook.move_chain_cursor to tollbook_writer;
