-- Takes up to p_max calls whose age has ended, so that they are dead-lettered: those that wait, and those whose lease has ended, which it has by then
-- wherever it was given with an age (lease_calls, extend_lease, hold_leases). A runner that had one has lost its lease. Of the jobs in p_except none is
-- taken. It costs no attempt.
create or replace function tollbook.take_old_calls(p_except json, p_max int, p_max_age_secs int, p_lease_secs int)
returns table (call_id bigint, lease_id uuid, attempt int, failures int, stream text, service_id bigint, job_index bigint)
language sql volatile security definer set search_path = tollbook, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
  with old as materialized (
    select call.call_id from call
    where call.status in ('ready', 'leased') and call.enqueued_at <= clock() - p_max_age_secs * interval '1 second'
      and (call.status = 'ready' or call.due_at <= clock()) and not is_halted()
      and not exists (
        select from json_to_recordset(p_except) as job(service_id bigint, job_index bigint)
        where job.service_id = call.service_id and job.job_index = call.job_index)
    order by call.enqueued_at limit p_max for update of call skip locked
  )
  update call set status = 'leased', lease_id = gen_random_uuid(), due_at = clock() + p_lease_secs * interval '1 second'
  from old where call.call_id = old.call_id
  returning call.call_id, call.lease_id, call.attempt, call.failures, call.stream, call.service_id, call.job_index
$$;

-- Takes up to p_max calls of routes that can be repeated no more: p_jobs says for each job after how many seconds. One that is being answered is
-- left alone. It costs no attempt. `left_by_client`: the last attempt ended because its client had left.
create or replace function tollbook.take_unrepeated_calls(p_jobs json, p_max int, p_lease_secs int)
returns table (call_id bigint, lease_id uuid, attempt int, failures int, stream text, service_id bigint, job_index bigint, left_by_client boolean)
language sql volatile security definer set search_path = tollbook, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
  with old as materialized (
    select call.call_id, call.status as was
    from json_to_recordset(p_jobs) as job(service_id bigint, job_index bigint, after_secs int)
    join call using (service_id, job_index)
    where (call.status = 'ready' or (call.status = 'leased' and call.due_at <= clock())) and not is_halted()
      and call.enqueued_at <= clock() - job.after_secs * interval '1 second'
    limit p_max for update of call skip locked
  )
  update call set status = 'leased', lease_id = gen_random_uuid(), due_at = clock() + p_lease_secs * interval '1 second'
  from old where call.call_id = old.call_id
  returning call.call_id, call.lease_id, call.attempt, call.failures, call.stream, call.service_id, call.job_index,
    -- not where a later attempt has ended with its process
    coalesce(old.was = 'ready' and call.last_reason = 'client_left', false)
$$;

grant execute on function tollbook.take_unrepeated_calls, tollbook.take_old_calls to tollbook_writer;
