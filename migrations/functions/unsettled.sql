-- Takes up to p_max unsettled calls that are due, pending ones before watched ones. The older a call is, the later its next
-- check. Nothing has to be returned, so a process that dies blocks none. An unpaid call whose lease has expired becomes pending:
-- it is not delivered again before it is paid.
create or replace function tollbook.take_unsettled(p_max int)
returns table (call_id bigint, stream text, status text, payment text, attempt int, age_secs float8,
  traceparent text)
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with due as materialized (
    select call.call_id from call
    where call.status in ('pending', 'watched', 'unpaid') and call.due_at <= clock() and not is_halted()
    order by call.status, call.due_at limit p_max for update skip locked
  )
  update call set
    status = case call.status when 'watched' then 'watched' else 'pending' end,
    lease_id = null,
    failures = call.failures + case call.status when 'unpaid' then 1 else 0 end,
    due_at = clock() + case call.status
      when 'watched' then least(greatest((clock() - created_at) / 2, interval '5 seconds'), interval '2 minutes')
      else least(greatest((clock() - created_at) / 4, interval '1 second'), interval '1 minute') end
  where call.call_id in (select due.call_id from due)
  returning call.call_id, call.stream, call.status, call.payment, call.attempt,
    extract(epoch from clock() - call.created_at)::float8, call.traceparent
$$;

-- Moves the next check of an unsettled call.
create or replace function tollbook.postpone_unsettled(p_call_id bigint, p_delay_ms int) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  update call set due_at = clock() + p_delay_ms * interval '1 millisecond'
  where call_id = p_call_id and status in ('pending', 'watched')
$$;

grant execute on function tollbook.take_unsettled, tollbook.postpone_unsettled to tollbook_writer;
