-- Takes up to p_max calls of these jobs that are due, for p_lease_secs, oldest first; where p_proven is true, only those
-- whose payment was proven by the chain or confirmed by an operator, not by a facilitator's answer alone, and those whose age has ended.
create or replace function tollbook.lease_top_ups(p_jobs json, p_max int, p_lease_secs int, p_proven boolean, p_max_age_secs int default null)
returns table (call_id bigint, lease_id uuid, attempt int, failures int, stream text, is_too_old boolean)
language sql volatile security definer set search_path = tollbook, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
  with due as materialized (
    select call.call_id
    from json_to_recordset(p_jobs) as job(service_id bigint, job_index bigint)
    join call using (service_id, job_index)
    where call.status in ('ready', 'leased') and call.due_at <= clock() and not is_halted()
      -- nobody has paid for a call that a trigger made
      and call.trigger_kind is null
      and (not p_proven or call.enqueued_at <= clock() - p_max_age_secs * interval '1 second' or exists (
        select from event cross join lateral (select event.data::json as fields) content
        where event.stream = stream_key(call.stream) and event.type in ('payment_settled', 'settlement_confirmed')
          and (fields->>'block_number' is not null or fields->>'evidence' = 'operator')))
    order by call.due_at limit p_max for update of call skip locked
  )
  update call set status = 'leased', attempt = call.attempt + 1, lease_id = gen_random_uuid(),
    -- an expired lease is an attempt that failed
    failures = call.failures + case call.status when 'leased' then 1 else 0 end,
    due_at = clock() + p_lease_secs * interval '1 second'
  where call.call_id in (select due.call_id from due)
  returning call.call_id, call.lease_id, call.attempt, call.failures, call.stream,
    coalesce(call.enqueued_at <= clock() - p_max_age_secs * interval '1 second', false)
$$;

grant execute on function tollbook.lease_top_ups to tollbook_writer;
