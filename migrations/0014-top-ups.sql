-- Top-ups: paid calls whose handler is our own, and credit whose payment did not last.

-- take_back: a settlement failed for good after its call had got further than the queue, or its payment was given back.
alter table tollbook.follow_up drop constraint follow_up_topic_check;
alter table tollbook.follow_up add constraint follow_up_topic_check
  check (topic in ('confirm', 'resolve', 'alert', 'take_back'));

insert into tollbook.checkpoint values ('take_back', 0);

-- Takes up to p_max calls that are due of these jobs, for p_lease_secs, oldest first; where p_proven says so, only those
-- whose payment somebody other than a facilitator has vouched for.
create function tollbook.lease_top_ups(p_jobs json, p_max int, p_lease_secs int, p_proven boolean)
returns table (call_id bigint, lease_id uuid, attempt int, failures int, stream text)
language sql volatile security definer set search_path = tollbook, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
  with due as materialized (
    select call.call_id
    from json_to_recordset(p_jobs) as job(service_id bigint, job_index bigint)
    join call using (service_id, job_index)
    where call.status in ('ready', 'leased') and call.due_at <= clock()
      and (not p_proven or exists (
        select from event cross join lateral (select convert_from(event.leaf, 'UTF8')::json->'data' as data) told
        where event.stream = call.stream and event.type in ('payment_settled', 'settlement_confirmed')
          and (data->>'block_number' is not null or data->>'evidence' = 'operator')))
    order by call.due_at limit p_max for update of call skip locked
  )
  update call set status = 'leased', attempt = call.attempt + 1, lease_id = gen_random_uuid(),
    -- a lease that ran out is an attempt that failed
    failures = call.failures + case call.status when 'leased' then 1 else 0 end,
    due_at = clock() + p_lease_secs * interval '1 second'
  where call.call_id in (select due.call_id from due)
  returning call.call_id, call.lease_id, call.attempt, call.failures, call.stream
$$;

-- Looks through up to p_max events that nobody has looked through for settlements that failed after they had been recorded
-- as settled, and for refunds, and notes those. Returns how many events it read.
create function tollbook.collect_take_backs(p_max int) returns int
language plpgsql volatile security definer set search_path = tollbook, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  head bigint;
  last bigint;
begin
  select seq into head from checkpoint where name = 'take_back' for update skip locked;
  if not found then return 0; end if;
  select max(read.seq) into last from (
    select event.seq from event where lane_id = 1 and event.seq > head order by event.seq limit p_max) read;
  if last is null then return 0; end if;
  insert into follow_up (topic, seq, stream, network, created_at, due_at)
  select 'take_back', event.seq, event.stream, convert_from(event.leaf, 'UTF8')::json->'data'->>'network', clock(), clock()
  from event
  where lane_id = 1 and event.seq > head and event.seq <= last and (
    event.type = 'refunded' or event.type = 'settlement_failed' and exists (
      select from event earlier where earlier.stream = event.stream
        and earlier.type in ('settlement_disproved', 'settlement_reorged')))
  on conflict do nothing;
  update checkpoint set seq = last where name = 'take_back';
  return last - head;
end $$;

revoke execute on function tollbook.lease_top_ups(json, int, int, boolean), tollbook.collect_take_backs(int) from public;
grant execute on function tollbook.lease_top_ups(json, int, int, boolean), tollbook.collect_take_backs(int)
  to tollbook_writer;
