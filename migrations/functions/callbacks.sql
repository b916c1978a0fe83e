-- Keeps where the client of a payment wants to be called, before the append that starts the payment: a row without that append
-- says nothing, and is pruned. The same request sent again is the same row.
create or replace function tollbook.put_callback(p_stream text, p_binding bytea, p_url text, p_payer text) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  insert into callback (stream, binding, url, payer, created_at)
  values (stream_key(p_stream), p_binding, p_url, p_payer, clock())
  on conflict do nothing
$$;

-- Reads up to p_max events that were not read yet, for all processes, and makes the callbacks of payments due that they may have
-- ended. Returns how many it read. Without any callback there is nothing to look for: what is read is at most the newest event of before
-- that was seen, and a callback is there before the events of its payment.
create or replace function tollbook.collect_callbacks(p_max int) returns int
language plpgsql volatile security definer set search_path = tollbook, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  newest bigint;
  passed record;
begin
  select seq into newest from event where lane_id = 1 order by seq desc limit 1;
  if not exists (select from callback) then
    update ledger_cursor set seq = newest where name = 'callback' and seq < newest;
    return 0;
  end if;
  passed := advance_cursor('callback', p_max);
  if passed.last is null then return 0; end if;
  update callback set seq = ended.seq, seen_at = clock(), due_at = clock(), tries = 0, last_failure = null
  from (
    select stream, max(event.seq) as seq from event
    where lane_id = 1 and event.seq > passed.previous and event.seq <= passed.last
      and type in ('payment_settled', 'completed', 'dead_lettered', 'refund_request_granted', 'refunded')
    group by stream
  ) ended
  where callback.stream = ended.stream and callback.told_seq < ended.seq;
  return passed.last - passed.previous;
end $$;

-- Takes up to p_max callbacks that are due: of each payer in turn, of one at most eight, and none of those that have enough under way (p_busy).
-- Of one payer the least tried ones come first: those of a receiver that never answers hold up no other. They are due again after a
-- minute, longer than sending takes, so that no other process sends them meanwhile and one that ends loses none.
create or replace function tollbook.take_callbacks(p_max int, p_busy text[])
returns table (stream text, binding bytea, url text, seq bigint, tries int, age_secs float8, payer text)
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with first as materialized (
    select callback.stream, callback.binding, callback.tries, callback.due_at, callback.payer from callback
    where callback.due_at not between clock() and clock() + interval '2 hours' and not is_halted()
      and callback.payer <> all (p_busy)
    order by callback.tries, callback.due_at limit 1000
  ), shared as materialized (
    select first.*, row_number() over (partition by first.payer order by first.tries, first.due_at) as turn from first
  ), due as materialized (
    select callback.stream, callback.binding
    from shared join callback on callback.stream = shared.stream and callback.binding = shared.binding
    -- another process may have taken it meanwhile
    where shared.turn <= 8 and callback.due_at not between clock() and clock() + interval '2 hours'
    order by shared.turn, shared.tries, shared.due_at limit p_max for update of callback skip locked
  )
  update callback set tries = callback.tries + 1, due_at = clock() + interval '1 minute'
  from due where callback.stream = due.stream and callback.binding = due.binding
  returning stream_name(callback.stream), callback.binding, callback.url, callback.seq, callback.tries,
    extract(epoch from clock() - callback.seen_at)::float8, callback.payer
$$;

-- Events up to p_seq need no message any more: it was delivered or given up, or there is nothing to tell (p_outcome null). A newer event
-- stays due.
create or replace function tollbook.end_callback(p_stream text, p_binding bytea, p_seq bigint, p_outcome text, p_failure text)
returns void language sql volatile security definer set search_path = tollbook, pg_temp as $$
  update callback set due_at = case when seq > p_seq then due_at end, told_seq = greatest(told_seq, p_seq),
    outcome = coalesce(p_outcome, outcome), outcome_at = case when p_outcome is null then outcome_at else clock() end,
    last_failure = p_failure
  where stream = stream_key(p_stream) and binding = p_binding
$$;

-- The message about events up to p_seq was not taken: it is due again.
create or replace function tollbook.return_callback(p_stream text, p_binding bytea, p_seq bigint, p_delay_ms bigint, p_failure text)
returns void language sql volatile security definer set search_path = tollbook, pg_temp as $$
  update callback set due_at = clock() + p_delay_ms * interval '1 millisecond', last_failure = p_failure
  where stream = stream_key(p_stream) and binding = p_binding and seq <= p_seq
$$;

-- Deletes up to p_max callbacks of payments of these wallets; returns how many.
create or replace function tollbook.erase_callbacks(p_payers text[], p_max int) returns int
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with gone as (
    delete from callback where (stream, binding) in (
      select stream, binding from callback
      where payer = any (select lower(one) from unnest(p_payers) one) limit p_max)
    returning 1
  )
  select count(*)::int from gone
$$;

grant execute on function tollbook.put_callback, tollbook.collect_callbacks, tollbook.take_callbacks, tollbook.end_callback,
  tollbook.return_callback, tollbook.erase_callbacks to tollbook_writer;
