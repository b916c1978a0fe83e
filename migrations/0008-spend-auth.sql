-- Spends that an operator has earned and not been paid yet. The ledger says which they are; here stands when each is looked
-- at next.
create table tollbook.spend_due (
  -- of the spend: its events tell all of it
  stream text collate "C" primary key,
  -- failed: it cannot be claimed any more, and its operator should know
  status text collate "C" not null default 'open' check (status in ('open', 'failed')),
  attempts int not null default 0,
  -- a machine word: why it is still here
  last_reason text,
  due_at timestamptz not null,
  created_at timestamptz not null
) with (autovacuum_vacuum_scale_factor = 0.01);
create index spend_due_open on tollbook.spend_due (due_at) where status = 'open';

insert into tollbook.checkpoint values ('spend', 0);

-- Looks through up to p_max events that nobody has looked through for earned spends, and notes those. Returns how many
-- events it read.
create function tollbook.collect_spends(p_max int) returns int
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
  insert into spend_due (stream, due_at, created_at)
  select event.stream, clock(), clock() from event
  where lane_id = 1 and event.seq > head and event.seq <= last and event.type = 'spend_earned'
  on conflict do nothing;
  update checkpoint set seq = last where name = 'spend';
  return last - head;
end $$;

-- Takes up to p_max spends that are due; nobody else gets them for p_lease_secs.
create function tollbook.take_spends(p_max int, p_lease_secs int) returns table (stream text, attempts int)
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with due as materialized (
    select spend_due.stream from spend_due where status = 'open' and due_at <= clock()
    order by due_at limit p_max for update skip locked
  )
  update spend_due set due_at = clock() + p_lease_secs * interval '1 second'
  where spend_due.stream in (select due.stream from due)
  returning spend_due.stream, spend_due.attempts
$$;

-- Notes why a spend could not be claimed, and when it is tried again.
create function tollbook.postpone_spend(p_stream text, p_delay_ms int, p_reason text) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  update spend_due set attempts = attempts + 1, last_reason = p_reason, due_at = clock() + p_delay_ms * interval '1 millisecond'
  where stream = p_stream and status = 'open'
$$;

-- Nobody needs to look at a spend again: it was paid, or, where there is a reason, never will be.
create function tollbook.end_spend(p_stream text, p_reason text) returns void
language plpgsql volatile security definer set search_path = tollbook, pg_temp as $$
begin
  if p_reason is null then delete from spend_due where stream = p_stream;
  else update spend_due set status = 'failed', attempts = attempts + 1, last_reason = p_reason where stream = p_stream;
  end if;
end $$;

grant select on tollbook.spend_due to tollbook_writer;
revoke execute on function tollbook.collect_spends(int), tollbook.take_spends(int, int),
  tollbook.postpone_spend(text, int, text), tollbook.end_spend(text, text) from public;
grant execute on function tollbook.collect_spends(int), tollbook.take_spends(int, int),
  tollbook.postpone_spend(text, int, text), tollbook.end_spend(text, text) to tollbook_writer;
