-- Keeps the identity of the database at the first start of a gateway.
create or replace function tollbook.record_database_identity(p_system_identifier text, p_oid bigint, p_timeline int) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  insert into database_identity values (true, p_system_identifier, p_oid, p_timeline, clock()) on conflict do nothing
$$;

grant execute on function tollbook.record_database_identity to tollbook_writer;
