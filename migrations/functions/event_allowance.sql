-- Takes up to p_wanted of the events of a kind that strangers may leave in the ledger: p_per_sec over all gateways, and p_most
-- in a burst. Returns how many it took.
create or replace function tollbook.take_event_allowance(p_kind text, p_wanted int, p_per_sec int, p_most int) returns int
language plpgsql volatile security definer set search_path = tollbook, pg_temp as $$
declare
  before event_allowance;
  moment timestamptz;
  filled float8;
  taken int;
begin
  select * into before from event_allowance where kind = p_kind for update;
  moment := clock();
  -- a clock that was set back refills nothing
  filled := least(p_most, before.available + p_per_sec * greatest(0, extract(epoch from moment - before.filled_at))::float8);
  taken := least(p_wanted, floor(filled));
  update event_allowance set available = filled - taken, filled_at = moment where kind = p_kind;
  return taken;
end $$;

grant execute on function tollbook.take_event_allowance to tollbook_writer;
