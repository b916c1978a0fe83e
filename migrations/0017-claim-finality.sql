-- A claim can go with its block: a spend stays due, with the transaction that claimed it, until that block is final.
alter table tollbook.spend_due
  -- Unix seconds: until then it can be claimed
  add column expiry numeric,
  -- the transaction that claimed it, as far as is known
  add column claim text collate "C",
  -- how often that was looked at
  add column looks int not null default 0;

create function tollbook.spend_expiry(p_stream text) returns numeric
language sql stable set search_path = tollbook, pg_temp as $$
  select (convert_from(event.leaf, 'UTF8')::json->'data'->>'expiry')::numeric from event
  where event.stream = p_stream and event.version = 1 and event.type = 'spend_accepted'
$$;
update tollbook.spend_due set expiry = tollbook.spend_expiry(stream);

create or replace function tollbook.collect_spends(p_max int) returns int
language plpgsql volatile security definer set search_path = tollbook, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  head bigint;
  last bigint;
begin
  select seq into head from checkpoint where name = 'spend' for update skip locked;
  if not found then return 0; end if;
  select max(read.seq) into last from (
    select event.seq from event where lane_id = 1 and event.seq > head order by event.seq limit p_max) read;
  if last is null then return 0; end if;
  insert into spend_due (stream, expiry, due_at, created_at)
  select event.stream, spend_expiry(event.stream), clock(), clock() from event
  where lane_id = 1 and event.seq > head and event.seq <= last and event.type = 'spend_earned'
  on conflict do nothing;
  update checkpoint set seq = last where name = 'spend';
  return last - head;
end $$;

drop function tollbook.take_spends(int, int);
-- Takes up to p_max spends that are due, those first that can be claimed no longer soonest; nobody else gets them for
-- p_lease_secs.
create function tollbook.take_spends(p_max int, p_lease_secs int)
returns table (stream text, attempts int, claim text, looks int)
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with due as materialized (
    select spend_due.stream from spend_due where status = 'open' and due_at <= clock()
    order by expiry nulls first, due_at limit p_max for update skip locked
  ), taken as (
    update spend_due set due_at = clock() + p_lease_secs * interval '1 second'
    where spend_due.stream in (select due.stream from due)
    returning spend_due.*
  )
  select taken.stream, taken.attempts, taken.claim, taken.looks from taken order by expiry nulls first
$$;

-- Notes the transaction that claimed a spend, and when it is looked at again. Nothing is amiss with it.
create function tollbook.watch_claim(p_stream text, p_claim text, p_delay_ms int) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  update spend_due set claim = p_claim, looks = case when claim = p_claim then looks + 1 else 1 end,
    attempts = 0, last_reason = null, due_at = clock() + p_delay_ms * interval '1 millisecond'
  where stream = p_stream and status = 'open'
$$;

revoke execute on function tollbook.spend_expiry(text), tollbook.take_spends(int, int),
  tollbook.watch_claim(text, text, int) from public;
grant execute on function tollbook.take_spends(int, int), tollbook.watch_claim(text, text, int) to tollbook_writer;
