-- Takes up to p_max calls that are due, for p_lease_secs, from each service in turn, so that one service's long queue does
-- not delay the others. It stops once the bodies that it takes have 16 MiB: one answer carries them all. The lease id is the
-- fencing token: it no longer matches once the call is leased anew. An expired lease makes its call due again.
create or replace function tollbook.lease_calls(p_services bigint[], p_max int, p_lease_secs int)
returns table (call_id bigint, lease_id uuid, attempt int, failures int, stream text, service_id bigint,
  job_index bigint, network text, asset text, symbol text, caller text, payment text, lease_until timestamptz, traceparent text, content_type text, body bytea)
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with due as materialized (
    select oldest.call_id, oldest.turn, coalesce(octet_length(call_body.body), 0) as bytes
    from unnest(p_services) as wanted(service_id) cross join lateral (
      select locked.call_id, locked.body_id, row_number() over (order by locked.due_at, locked.call_id) as turn from (
        select call.call_id, call.body_id, call.due_at from call
        where call.service_id = wanted.service_id and call.status in ('ready', 'leased') and call.due_at <= clock()
        order by call.due_at limit p_max for update skip locked) locked
    ) oldest left join call_body using (body_id)
    where not is_halted()
  ), taken as (
    select in_turn.call_id from (
      select due.call_id, due.turn, sum(due.bytes) over (order by due.turn, due.call_id) - due.bytes as bytes_before from due
    ) in_turn
    where in_turn.bytes_before < 16777216
    order by in_turn.turn, in_turn.call_id limit p_max
  ), leased as (
    update call set status = 'leased', attempt = call.attempt + 1, lease_id = gen_random_uuid(),
      -- an expired lease is a failure that its runner did not report
      failures = call.failures + case call.status when 'leased' then 1 else 0 end,
      due_at = clock() + p_lease_secs * interval '1 second'
    where call.call_id in (select taken.call_id from taken)
    returning call.*
  )
  select leased.call_id, leased.lease_id, leased.attempt, leased.failures, leased.stream, leased.service_id,
    leased.job_index, leased.network, leased.asset, leased.symbol, leased.caller, leased.payment, leased.due_at, leased.traceparent,
    call_body.content_type, call_body.body
  from leased left join call_body using (body_id)
  order by leased.call_id
$$;

-- Moves the end of a lease that is still valid; returns no row where it is not.
create or replace function tollbook.extend_lease(p_call_id bigint, p_lease_id uuid, p_lease_secs int) returns setof timestamptz
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  update call set due_at = clock() + p_lease_secs * interval '1 second'
  where call_id = p_call_id and lease_id = p_lease_id and status in ('leased', 'unpaid')
  returning due_at
$$;

grant execute on function tollbook.lease_calls, tollbook.extend_lease to tollbook_writer;
