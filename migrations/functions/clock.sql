-- The only clock that decides about quotes, expiries and leases. Test databases replace it to move time.
create or replace function tollbook.clock() returns timestamptz language sql volatile as 'select clock_timestamp()';

grant execute on function tollbook.clock to tollbook_writer, tollbook_reader;
