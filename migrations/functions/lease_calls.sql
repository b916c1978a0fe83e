-- Takes up to p_max calls that are due, for p_lease_secs. The lease id is the fencing token: it no longer matches once the call is
-- leased anew. An expired lease makes its call due again.
--
-- Services share: a place goes to the service that has the fewest calls with runners, so that neither a long queue nor slow calls of one
-- keep those of the others waiting. Within a service a job of a higher priority goes first, then the oldest call; one request in ten
-- takes the oldest, whatever its priority, so that none waits for ever. A job with a limit has at most so many calls with runners at
-- once, in all processes. p_jobs names the jobs that have a priority or a limit: `service_id`, `job_index`, `priority`, `max_concurrent`.
--
-- It stops once the bodies that it takes have 16 MiB: one answer carries them all. What it reads follows from the number of jobs
-- with calls, and not from the number of calls.
--
-- A call whose age has ended is not taken, and a lease ends with the age of its call (take_old_calls).
--
-- Calls that triggers made are taken where the gateway asks for them: one of an older version would hand them out as paid ones.
-- `payment` is the idempotency key, also for a gateway of a version whose keys named the payment alone.
create or replace function tollbook.lease_calls(p_services bigint[], p_max int, p_lease_secs int, p_jobs json default '[]',
  p_triggered boolean default false, p_max_age_secs int default null)
returns table (call_id bigint, lease_id uuid, attempt int, failures int, stream text, service_id bigint,
  job_index bigint, network text, asset text, symbol text, caller text, payment text, lease_until timestamptz, traceparent text, content_type text, body bytea,
  trigger_kind text, trigger_name text, trigger_id text)
language plpgsql volatile security definer set search_path = tollbook, pg_temp
-- always the same plan of index look-ups, also when it was made for empty tables or from wrong row estimates
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
#variable_conflict use_column
declare
  moment constant timestamptz := clock();
  is_by_age constant boolean := random() < 0.1;
  too_old constant timestamptz := coalesce(moment - p_max_age_secs * interval '1 second', '-infinity');
begin
  if is_halted() then return; end if;
  -- Who leases calls of a limited job does so alone, until its transaction ends. A statement that begins afterwards counts what others
  -- have leased. All wait in the same order, and before they lock any call.
  perform pg_advisory_xact_lock(hashtextextended('tollbook.lease_calls ' || limited.service_id || '/' || limited.job_index, 0))
  from (
    select job.service_id, job.job_index from json_to_recordset(p_jobs) as job(service_id bigint, job_index bigint, max_concurrent int)
    where job.max_concurrent is not null and job.service_id = any (p_services)
      and exists (select from call where call.service_id = job.service_id and call.waits = false and call.job_index = job.job_index
        and call.status in ('ready', 'leased') and call.due_at <= moment)
    order by job.service_id, job.job_index
  ) limited;

  return query
  with recursive head as (
    -- of each job with calls, the one that is due first: jumps from job to job in the index
    select first.* from (select distinct id from unnest(p_services) as id) wanted cross join lateral (
      select call.service_id, call.job_index, call.due_at from call
      where call.service_id = wanted.id and call.waits = false and call.status in ('ready', 'leased')
      order by call.service_id, call.waits, call.job_index, call.due_at limit 1) first
    union all
    select next.* from head cross join lateral (
      select call.service_id, call.job_index, call.due_at from call
      where call.service_id = head.service_id and call.waits = false and call.job_index > head.job_index and call.status in ('ready', 'leased')
      order by call.service_id, call.waits, call.job_index, call.due_at limit 1) next
  ), service as materialized (
    select due.id, random() as tie, case when count(*) over () > 1 then (
      select count(*) from (
        select from call where call.status = 'leased' and call.service_id = due.id and call.due_at > moment limit 1000) live) else 0 end as leased
    from (select distinct head.service_id as id from head where head.due_at <= moment) due
  ), job as materialized (
    -- Each has a call that is due: so many are enough. Of each of a few jobs as many calls are locked as may be taken, of each of many a
    -- few.
    select ranked.*, case when count(*) over () <= 4 then p_max else 4 * p_max / count(*) over () + 1 end as most
    from (
      select head.service_id, head.job_index, coalesce(named.priority, 0) as priority, named.room, service.leased, service.tie,
        row_number() over (partition by head.service_id
          order by case when is_by_age then 0 else coalesce(named.priority, 0) end desc, head.due_at, head.job_index) as turn
      from head join service on service.id = head.service_id
      left join lateral (
        select job.priority, job.max_concurrent - case when job.max_concurrent is null then null else (
          select count(*)::int from call
          where call.status = 'leased' and call.service_id = head.service_id and call.job_index = head.job_index and call.due_at > moment) end as room
        from json_to_recordset(p_jobs) as job(service_id bigint, job_index bigint, priority int, max_concurrent int)
        where job.service_id = head.service_id and job.job_index = head.job_index
      ) named on true
      where head.due_at <= moment and coalesce(named.room, 1) > 0
      order by service.leased + row_number() over (partition by head.service_id
          order by case when is_by_age then 0 else coalesce(named.priority, 0) end desc, head.due_at, head.job_index), service.tie
      limit p_max
    ) ranked
  ), due as materialized (
    select oldest.call_id, oldest.body_id, oldest.due_at, job.service_id, job.priority, job.leased, job.tie
    from job cross join lateral (
      select call.call_id, call.body_id, call.due_at from call
      where call.service_id = job.service_id and call.waits = false and call.job_index = job.job_index
        and call.status in ('ready', 'leased') and call.due_at <= moment and (p_triggered or call.trigger_kind is null)
        and call.enqueued_at > too_old
      order by call.due_at limit least(job.most, job.room) for update skip locked) oldest
  ), in_turn as (
    select due.call_id, coalesce(octet_length(call_body.body), 0) as bytes,
      row_number() over (order by due.leased + due.turn, due.tie, due.call_id) as place
    from (
      select due.*, row_number() over (partition by due.service_id
        order by case when is_by_age then 0 else due.priority end desc, due.due_at, due.call_id) as turn
      from due
    ) due left join call_body using (body_id)
  ), taken as (
    select chosen.call_id from (
      select in_turn.call_id, in_turn.place, sum(in_turn.bytes) over (order by in_turn.place) - in_turn.bytes as bytes_before from in_turn
    ) chosen
    where chosen.place <= p_max and chosen.bytes_before < 16777216
  ), leased as (
    update call set status = 'leased', attempt = call.attempt + 1, lease_id = gen_random_uuid(),
      -- an expired lease is a failure that its runner did not report
      failures = call.failures + case call.status when 'leased' then 1 else 0 end,
      due_at = least(clock() + p_lease_secs * interval '1 second', call.enqueued_at + p_max_age_secs * interval '1 second')
    from taken where call.call_id = taken.call_id
    returning call.*
  )
  select leased.call_id, leased.lease_id, leased.attempt, leased.failures, leased.stream, leased.service_id,
    leased.job_index, leased.network, leased.asset, leased.symbol, leased.caller, coalesce(leased.idempotency_key, leased.payment), leased.due_at, leased.traceparent,
    call_body.content_type, call_body.body, leased.trigger_kind, leased.trigger_name, leased.trigger_id
  from leased left join call_body using (body_id)
  order by leased.call_id;
end $$;

-- Takes one call for p_lease_secs, if it waits or its lease has expired: also where its next attempt is not due, since its client asks for it.
create or replace function tollbook.lease_call(p_call_id bigint, p_lease_secs int, p_max_age_secs int)
returns table (call_id bigint, lease_id uuid, attempt int, failures int, stream text, service_id bigint,
  job_index bigint, network text, asset text, symbol text, caller text, payment text, lease_until timestamptz, traceparent text)
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  update call set status = 'leased', attempt = call.attempt + 1, lease_id = gen_random_uuid(),
    failures = call.failures + case call.status when 'leased' then 1 else 0 end,
    due_at = least(clock() + p_lease_secs * interval '1 second', call.enqueued_at + p_max_age_secs * interval '1 second')
  where call.call_id = p_call_id and (call.status = 'ready' or (call.status = 'leased' and call.due_at <= clock()))
    and call.enqueued_at > clock() - p_max_age_secs * interval '1 second' and not is_halted()
  returning call.call_id, call.lease_id, call.attempt, call.failures, call.stream, call.service_id, call.job_index, call.network, call.asset,
    call.symbol, call.caller, coalesce(call.idempotency_key, call.payment), call.due_at, call.traceparent
$$;

-- Moves the end of a lease that is still valid, at most to the end of its call's age; returns no row where it is not.
create or replace function tollbook.extend_lease(p_call_id bigint, p_lease_id uuid, p_lease_secs int, p_max_age_secs int default null)
returns setof timestamptz
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  update call set due_at = least(clock() + p_lease_secs * interval '1 second', enqueued_at + p_max_age_secs * interval '1 second')
  where call_id = p_call_id and lease_id = p_lease_id and status in ('leased', 'unpaid')
    and (p_max_age_secs is null or enqueued_at + p_max_age_secs * interval '1 second' > clock())
  returning due_at
$$;

grant execute on function tollbook.lease_calls, tollbook.lease_call, tollbook.extend_lease to tollbook_writer;
