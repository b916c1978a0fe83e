-- Moves a cursor over up to p_max events and returns the range that it passed: `previous` excluded, `last` included. `last`
-- is null where there are no new events, or where another process is moving this cursor. The caller must process the range in the same
-- transaction.
create or replace function tollbook.advance_cursor(p_name text, p_max int, out previous bigint, out last bigint)
language plpgsql volatile set search_path = tollbook, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
begin
  select seq into previous from ledger_cursor where name = p_name for update skip locked;
  if not found then return; end if;
  select max(unread.seq) into last from (
    select event.seq from event where lane_id = 1 and event.seq > previous order by event.seq limit p_max) unread;
  if last is not null then update ledger_cursor set seq = last where name = p_name; end if;
end $$;

-- A whole number of an event's data; null where it is none. The writer role can append any JSON: what cannot be read must not
-- stop a collector. Without separate settings, it becomes a part of the statements that call it.
create or replace function tollbook.whole_number(p_text text) returns numeric language sql immutable as $$
  select case when p_text ~ '^[0-9]+$' and length(p_text) < 80 then p_text::numeric end
$$;

-- Reads up to p_max events that were not read yet, and inserts the follow-ups that they need. Returns how many it read. An
-- event that lacks its network, or whose block number is none, gets the follow-up 'unreadable' instead. What the appends of these events
-- have left is swept as well.
create or replace function tollbook.collect_follow_ups(p_max int) returns int
language plpgsql volatile security definer set search_path = tollbook, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  moment timestamptz := clock();
  passed record;
begin
  passed := advance_cursor('follow_up', p_max);
  if passed.last is null then return 0; end if;
  -- each event's JSON is read once, into a record: an operator for each field would read it anew, and took most of the time
  insert into follow_up (topic, seq, network, block_number, created_at, due_at)
  select topic, wanted.seq, coalesce(data.network, ''),
    case topic when 'confirm' then whole_number(data.block_number) end, moment, moment
  from (
    select event.seq, event.type, event.data::json as data from event
    where lane_id = 1 and event.seq > passed.previous and event.seq <= passed.last and event.type in (
      'payment_settled', 'settlement_confirmed', 'payment_recovered',
      'settlement_disproved', 'settlement_reorged', 'payer_mismatch', 'settlement_overdue', 'operator_usage_implausible',
      'operator_payouts_postponed', 'refund_requested')
  ) wanted
  cross join lateral json_to_record(case json_typeof(wanted.data) when 'object' then wanted.data else '{}' end)
    as data(network text, block_number text, call text, evidence text)
  cross join lateral unnest(case
    when data.network is null and wanted.type <> 'operator_usage_implausible'
      or data.block_number is not null and whole_number(data.block_number) is null then array['unreadable']
    when wanted.type in ('payment_settled', 'settlement_confirmed', 'payment_recovered') then array['confirm']
    when data.call = 'kept' then array['resolve', 'alert']
    else array['alert'] end) as topic
  where topic <> 'confirm' or data.evidence is distinct from 'operator' or data.block_number is not null
  on conflict do nothing;
  perform sweep_batches();
  return passed.last - passed.previous;
end $$;

-- The same for settlements that failed after they had been recorded as settled, and for refunds: the credit that they
-- bought is reversed.
create or replace function tollbook.collect_top_up_reversals(p_max int) returns int
language plpgsql volatile security definer set search_path = tollbook, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  passed record;
begin
  passed := advance_cursor('top_up_reversal', p_max);
  if passed.last is null then return 0; end if;
  insert into follow_up (topic, seq, network, created_at, due_at)
  select 'reverse_top_up', event.seq, coalesce(event.data::json->>'network', ''), clock(), clock()
  from event
  where lane_id = 1 and event.seq > passed.previous and event.seq <= passed.last and (
    event.type = 'refunded' or event.type = 'settlement_failed' and exists (
      select from event earlier where earlier.stream = event.stream
        and earlier.type in ('settlement_disproved', 'settlement_reorged')))
  on conflict do nothing;
  return passed.last - passed.previous;
end $$;

-- The same for earned spends: each is to be paid out before the expiry that its first event names.
create or replace function tollbook.collect_payouts(p_max int) returns int
language plpgsql volatile security definer set search_path = tollbook, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  passed record;
begin
  passed := advance_cursor('payout', p_max);
  if passed.last is null then return 0; end if;
  insert into payout (stream, expiry, due_at, created_at)
  select stream_name(event.stream), (
      select whole_number(accepted.data::json->>'expiry') from event accepted
      where accepted.stream = event.stream and accepted.version = 1 and accepted.type = 'spend_accepted'),
    clock(), clock()
  from event
  where lane_id = 1 and event.seq > passed.previous and event.seq <= passed.last and event.type = 'spend_earned'
  on conflict do nothing;
  return passed.last - passed.previous;
end $$;

grant execute on function tollbook.collect_follow_ups, tollbook.collect_top_up_reversals, tollbook.collect_payouts
  to tollbook_writer;
