-- The order of calls by key. A key has a number of places, one where its calls are strictly one after another. A call has a place from its
-- turn on until it leaves the outbox, through all its attempts; the others of its key wait, in the order in which they were enqueued, and
-- no runner gets them. Two calls never have one place: a unique index sees to it.

-- What the changes of a batch mean for the order of their keys. Only the append functions call this, under the lane's lock.
-- p_touched: the calls that the batch names, in its order.
create or replace function tollbook.keep_order(p_keys bytea[], p_touched bigint[], p_batch bigint) returns void
language plpgsql volatile set search_path = tollbook, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
declare
  one bytea;
begin
  -- a payment that failed after all: its call was never enqueued
  update call set key_slot = null, key_turn = null, waits = false
  where call_id = any (p_touched) and order_key is not null and status = 'watched' and key_turn is not null;
  -- a dead letter, where it does not keep its place; one that was too old while it waited for its turn
  update call set key_slot = null, waits = false
  where call_id = any (p_touched) and (key_slot is not null or waits) and status = 'dead' and not keeps_key;
  -- it has failed so often that the others no longer wait for it: from now on it is tried on its own. One whose leases ended without an
  -- outcome, because it kills its runners, is leased when that is found.
  update call set key_slot = null, key_turn = null, order_key = null
  where call_id = any (p_touched) and key_slot is not null and status in ('ready', 'leased') and failures >= key_failures;
  -- enqueued, or requeued: behind those that wait already, or before them
  update call set waits = true, key_turn = coalesce(key_turn, p_batch * 1000000 + array_position(p_touched, call_id))
  where call_id = any (p_touched) and order_key is not null and key_slot is null and not waits and status = 'ready';

  foreach one in array p_keys loop
    with first as materialized (
      select first.*, row_number() over (order by first.key_turn, first.call_id) as n from (
        select call.call_id, call.key_turn, call.key_limit from call
        where call.order_key = one and call.waits order by call.order_key, call.key_turn limit 100) first
    ), free as (
      select place, row_number() over (order by place) as n
      from generate_series(0, (select max(first.key_limit) - 1 from first)) as place
      where not exists (select from call where call.order_key = one and call.key_slot = place)
    ), next as (
      -- Each has the limit of the policy by which it was paid. One that has no place under its own holds up those behind it.
      select first.call_id, free.place, bool_and(free.place < first.key_limit) over (order by n) as fits
      from first join free using (n)
    )
    update call set waits = false, key_slot = next.place from next where next.fits and call.call_id = next.call_id;
  end loop;
end $$;
