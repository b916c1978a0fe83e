-- Stops every gateway: a gateway has noticed that the ledger lacks events that were acknowledged, or has others in their place.
-- The first reason is kept.
create or replace function tollbook.halt_ledger(p_reason text, p_known_seq bigint, p_found_seq bigint) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  update lane set halt_reason = p_reason, halt_known_seq = p_known_seq, halt_found_seq = p_found_seq, halted_at = clock()
  where halt_reason is null
$$;

-- While the ledger is halted, the functions that hand out work hand out none: its outcome could not be recorded.
create or replace function tollbook.is_halted() returns boolean
language sql stable security definer set search_path = tollbook, pg_temp as $$
  select exists (select from lane where halt_reason is not null)
$$;

-- For the owner alone: after a recovery, before the gateways are started again.
create or replace function tollbook.clear_halt() returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  update lane set halt_reason = null, halt_known_seq = null, halt_found_seq = null, halted_at = null
$$;

grant execute on function tollbook.halt_ledger to tollbook_writer;
