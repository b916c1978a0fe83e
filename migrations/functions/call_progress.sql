-- Keeps the last progress of a call for the holder of its lease, a runner of these services; false where that is somebody else. Gateways of the
-- version before name no services.
create or replace function tollbook.report_progress(p_call_id bigint, p_lease_id uuid, p_fraction double precision, p_message text,
  p_services bigint[] default null)
returns boolean language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with told as (
    insert into call_progress (call_id, lease_id, fraction, message, reported_at)
    select call_id, lease_id, p_fraction, p_message, clock() from call
    where call_id = p_call_id and lease_id = p_lease_id and status = 'leased' and due_at > clock()
      and (p_services is null or service_id = any (p_services))
    on conflict (call_id) do update set lease_id = excluded.lease_id, fraction = excluded.fraction, message = excluded.message,
      reported_at = excluded.reported_at
    returning 1
  )
  select exists (select from told)
$$;

grant execute on function tollbook.report_progress to tollbook_writer;
