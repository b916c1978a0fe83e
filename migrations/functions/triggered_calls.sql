-- The id of a call that a trigger will make: its one event names it, so it is taken before the append. An append that is refused leaves
-- the id unused.
create or replace function tollbook.next_call_id() returns bigint
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  select nextval(pg_get_serial_sequence('tollbook.call', 'call_id'))
$$;

grant execute on function tollbook.next_call_id to tollbook_writer;
