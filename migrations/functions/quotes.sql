-- Quotes issued before this time, in Unix seconds, are revoked; null where none is. The last event's time decides, and it never
-- goes back. In PL/pgSQL, which keeps its plan: a function in SQL would be planned again in every statement that calls it.
create or replace function tollbook.quotes_revoked_before() returns bigint
language plpgsql stable set search_path = tollbook, pg_temp as $$
begin
  return (
    select (event.data::json->>'before')::bigint from event
    where event.stream = stream_key('operator:quotes') order by event.version desc limit 1);
end $$;

grant execute on function tollbook.quotes_revoked_before to tollbook_writer;
