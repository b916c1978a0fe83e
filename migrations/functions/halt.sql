-- Stops every gateway: a gateway has noticed that the ledger lacks events that were acknowledged, or has others in their place.
-- The first reason is kept.
create or replace function tollbook.halt_ledger(p_reason text, p_known_seq bigint, p_found_seq bigint) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  -- an append replaces the row: it must be over, or this update would find nothing
  select from lane_lock for update;
  update lane set halt_reason = p_reason, halt_known_seq = p_known_seq, halt_found_seq = p_found_seq, halted_at = clock()
  where halt_reason is null
$$;

-- While the ledger is halted, the functions that hand out work hand out none: its outcome could not be recorded.
create or replace function tollbook.is_halted() returns boolean
language sql stable security definer set search_path = tollbook, pg_temp as $$
  select exists (select from (select halt_reason from lane where lane_id = 1 order by batch desc limit 1) head
    where halt_reason is not null)
$$;

-- Its commit waits for the synchronous standby, and so for all that was committed before: a lock of a row is written too. On a
-- primary that was cut off it does not return.
create or replace function tollbook.reach_standby() returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  select from lane_lock for update
$$;

grant execute on function tollbook.halt_ledger, tollbook.is_halted, tollbook.reach_standby to tollbook_writer;
