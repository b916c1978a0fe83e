-- Takes and extends the leases of calls that came over a broker, many in one call. The lease that a message carries is replaced by the one
-- that its runner names, so that another copy of the message leases the call to no runner; the same request, sent again, changes nothing.
-- Extending a lease names it twice. Returns the leases that are held now; the others are lost. The rows are locked in one order, so
-- that two requests for the same calls do not wait for each other. A lease ends with the age of its call at the latest.
create or replace function tollbook.hold_leases(p_call_ids bigint[], p_lease_ids uuid[], p_new_lease_ids uuid[], p_services bigint[], p_lease_secs int,
  p_max_age_secs int default null)
returns table (call_id bigint, lease_id uuid, lasts_ms bigint)
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with wanted as (
    select wish.call_id, wish.lease_id, wish.new_lease_id
    from unnest(p_call_ids, p_lease_ids, p_new_lease_ids) as wish(call_id, lease_id, new_lease_id)
  ), locked as materialized (
    select call.call_id, wanted.new_lease_id from call join wanted on wanted.call_id = call.call_id
    where call.service_id = any(p_services) and call.lease_id in (wanted.lease_id, wanted.new_lease_id)
      -- a call whose payment was taken back is not begun any more
      and (call.status = 'leased' or (call.status = 'unpaid' and wanted.lease_id = wanted.new_lease_id))
      and (p_max_age_secs is null or call.enqueued_at + p_max_age_secs * interval '1 second' > clock())
      and not is_halted()
    order by call.call_id for update of call
  )
  update call set lease_id = locked.new_lease_id,
    due_at = least(clock() + p_lease_secs * interval '1 second', call.enqueued_at + p_max_age_secs * interval '1 second')
  from locked where call.call_id = locked.call_id
  returning call.call_id, call.lease_id, ceil(extract(epoch from call.due_at - clock()) * 1000)::bigint
$$;

grant execute on function tollbook.hold_leases to tollbook_writer;
