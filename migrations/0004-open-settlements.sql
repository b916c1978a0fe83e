-- Settlements that are open: found again by whoever has time, in any process, until they are resolved.

-- watched: the payment is said to have failed, but its authorization still holds; should it land after all, the call is
-- there. It takes no room in the outbox.
alter table tollbook.call drop constraint call_status_check;
alter table tollbook.call add constraint call_status_check
  check (status in ('held', 'watched', 'ready', 'leased', 'dead'));
-- which payment of its stream it is paid by, and what that payment holds besides its own name
alter table tollbook.call add column payment text collate "C", add column claims json;
create index call_unsettled on tollbook.call (status, due_at) where status in ('held', 'watched');
-- those that were held before this migration
update tollbook.call set payment = (
  select format('%s/eip3009/%s/%s/%s', paid->>'network', paid->>'asset', paid->>'payer', paid->>'nonce')
  from (
    select convert_from(event.leaf, 'UTF8')::json->'data'->'payment' as paid from tollbook.event
    where event.stream = call.stream and event.type = 'settlement_started' order by event.version desc limit 1) started)
  where status = 'held';

-- Places in the ledger that something is still wanted for: `confirm` a settlement on the chain until it is final,
-- `resolve` one that does not stand while a runner has its call, `alert` the operator. Filled from the events in their
-- order, emptied as they are done.
create table tollbook.follow_up (
  topic text collate "C" not null check (topic in ('confirm', 'resolve', 'alert')),
  seq bigint not null,
  stream text collate "C" not null,
  network text collate "C" not null,
  -- where the settlement stands on the chain; null while nobody has seen it there
  block_number numeric,
  block_hash text,
  -- how far the chain was when a settlement that nobody has seen there was first looked for
  seen_at_block numeric,
  tries int not null default 0,
  created_at timestamptz not null,
  due_at timestamptz not null,
  primary key (topic, seq)
) with (autovacuum_vacuum_scale_factor = 0.01);
create index follow_up_proven on tollbook.follow_up (network, block_number) where block_number is not null;
create index follow_up_due on tollbook.follow_up (topic, due_at) where block_number is null;

-- How far each reader of the ledger has come.
create table tollbook.checkpoint (
  name text collate "C" primary key,
  seq bigint not null
);
insert into tollbook.checkpoint values ('follow_up', 0);

-- Takes up to p_max open settlements that are due, those that nobody has called failed first. The next look at each comes the later, the older it is; nobody has to
-- give one back, so a process that dies holds nothing up.
create function tollbook.take_unsettled(p_max int)
returns table (call_id bigint, stream text, status text, payment text, age_secs float8)
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with due as materialized (
    select call.call_id from call
    where call.status in ('held', 'watched') and call.due_at <= clock()
    order by call.status, call.due_at limit p_max for update skip locked
  )
  update call set due_at = clock() + case call.status
    when 'held' then least(greatest((clock() - created_at) / 4, interval '1 second'), interval '1 minute')
    else least(greatest((clock() - created_at) / 2, interval '5 seconds'), interval '2 minutes') end
  where call.call_id in (select due.call_id from due)
  returning call.call_id, call.stream, call.status, call.payment, extract(epoch from clock() - call.created_at)::float8
$$;

-- Moves the next look at an open settlement.
create function tollbook.postpone_unsettled(p_call_id bigint, p_delay_ms int) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  update call set due_at = clock() + p_delay_ms * interval '1 millisecond'
  where call_id = p_call_id and status in ('held', 'watched')
$$;

-- Looks through up to p_max events that nobody has looked through yet, and notes those that want a follow-up. Returns how
-- many events it read.
create function tollbook.collect_follow_ups(p_max int) returns int
language plpgsql volatile security definer set search_path = tollbook, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  head bigint;
  last bigint;
begin
  select seq into head from checkpoint where name = 'follow_up' for update skip locked;
  if not found then return 0; end if;
  select max(read.seq) into last from (
    select event.seq from event where lane_id = 1 and event.seq > head order by event.seq limit p_max) read;
  if last is null then return 0; end if;
  insert into follow_up (topic, seq, stream, network, block_number, block_hash, created_at, due_at)
  select topic, wanted.seq, wanted.stream, data->>'network',
    case topic when 'confirm' then (data->>'block_number')::numeric end,
    case topic when 'confirm' then data->>'block_hash' end, clock(), clock()
  from (
    select event.seq, event.stream, event.type, convert_from(event.leaf, 'UTF8')::json->'data' as data from event
    where lane_id = 1 and event.seq > head and event.seq <= last and event.type in (
      'payment_settled', 'settlement_confirmed',
      'settlement_disproved', 'settlement_reorged', 'payer_mismatch', 'settlement_overdue')
  ) wanted
  cross join lateral unnest(case
    when wanted.type in ('payment_settled', 'settlement_confirmed') then array['confirm']
    when data->>'call' = 'kept' then array['resolve', 'alert']
    else array['alert'] end) as topic
  where not (topic = 'confirm' and data->>'evidence' = 'operator' and data->>'block_number' is null)
  on conflict do nothing;
  update checkpoint set seq = last where name = 'follow_up';
  return last - head;
end $$;

-- Takes up to p_max settlements of a network whose block is final.
create function tollbook.take_proven(p_network text, p_finalized numeric, p_max int)
returns table (seq bigint, stream text, block_number numeric, block_hash text)
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with due as materialized (
    select follow_up.seq from follow_up
    where topic = 'confirm' and network = p_network and follow_up.block_number <= p_finalized and due_at <= clock()
    order by follow_up.block_number limit p_max for update skip locked
  )
  update follow_up set tries = tries + 1,
    due_at = clock() + least(greatest((clock() - created_at) / 4, interval '1 second'), interval '10 minutes')
  where topic = 'confirm' and follow_up.seq in (select due.seq from due)
  returning follow_up.seq, follow_up.stream, follow_up.block_number, follow_up.block_hash
$$;

-- Takes up to p_max follow-ups of a topic that have no block to wait for, of one network or of all. The next try comes the
-- later, the older they are.
create function tollbook.take_follow_ups(p_topic text, p_network text, p_max int)
returns table (seq bigint, stream text, tries int, seen_at_block numeric, age_secs float8)
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with due as materialized (
    select follow_up.seq from follow_up
    where topic = p_topic and (p_network is null or network = p_network) and block_number is null and due_at <= clock()
    order by due_at limit p_max for update skip locked
  )
  update follow_up set tries = follow_up.tries + 1,
    due_at = clock() + least(greatest((clock() - created_at) / 4, interval '2 seconds'), interval '10 minutes')
  where topic = p_topic and follow_up.seq in (select due.seq from due)
  returning follow_up.seq, follow_up.stream, follow_up.tries, follow_up.seen_at_block,
    extract(epoch from clock() - created_at)::float8
$$;

-- Notes how far the chain was when a settlement was first looked for in vain.
create function tollbook.note_seen_block(p_seq bigint, p_block numeric) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  update follow_up set seen_at_block = p_block where topic = 'confirm' and seq = p_seq and seen_at_block is null
$$;

-- Gives up what nobody could bring to an end within a month. A piece at a time; returns how many went.
create function tollbook.sweep_follow_ups(p_max int) returns int
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with old as (
    delete from follow_up where (topic, seq) in (
      select topic, seq from follow_up where created_at < clock() - interval '30 days' limit p_max)
    returning 1
  )
  select count(*)::int from old
$$;

create function tollbook.end_follow_ups(p_topic text, p_seqs bigint[]) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  delete from follow_up where topic = p_topic and seq = any (p_seqs)
$$;

grant select on tollbook.follow_up, tollbook.checkpoint to tollbook_writer;
revoke execute on function tollbook.take_unsettled(int), tollbook.postpone_unsettled(bigint, int),
  tollbook.collect_follow_ups(int), tollbook.take_proven(text, numeric, int), tollbook.take_follow_ups(text, text, int),
  tollbook.note_seen_block(bigint, numeric), tollbook.sweep_follow_ups(int), tollbook.end_follow_ups(text, bigint[])
  from public;
grant execute on function tollbook.take_unsettled(int), tollbook.postpone_unsettled(bigint, int),
  tollbook.collect_follow_ups(int), tollbook.take_proven(text, numeric, int), tollbook.take_follow_ups(text, text, int),
  tollbook.note_seen_block(bigint, numeric), tollbook.sweep_follow_ups(int), tollbook.end_follow_ups(text, bigint[])
  to tollbook_writer;
