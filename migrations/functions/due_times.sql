-- Makes rows due now that were written while the clock was ahead, so that they do not wait for as long as it was. Each delay
-- here is shorter than 15 minutes, except those of calls that a runner has failed or was too busy for: their configured delay may be a
-- day, and a busy runner may ask for an hour, so they stay as they are, and so do leases, which must not end early. Returns how many rows it changed.
create or replace function tollbook.pull_due_times(p_max int) returns int
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with moment as materialized (
    select clock() as now, clock() + interval '15 minutes' as longest
  ), late_call as materialized (
    select call_id from call, moment
    where (status in ('pending', 'watched') or status = 'ready' and failures = 0 and refusals = 0) and due_at > longest
    limit p_max for update of call skip locked
  ), pulled_call as (
    update call set due_at = now, created_at = least(created_at, now), enqueued_at = least(enqueued_at, now) from moment
    where call_id in (select call_id from late_call) returning 1
  ), young_call as materialized (
    select call_id from call, moment
    where status in ('ready', 'leased') and enqueued_at > longest and call_id not in (select call_id from late_call)
    limit p_max for update of call skip locked
  ), aged_call as (
    update call set enqueued_at = now from moment where call_id in (select call_id from young_call) returning 1
  ), late_follow_up as materialized (
    select topic, seq from follow_up, moment where due_at > longest or retry_at > longest limit p_max for update of follow_up skip locked
  ), pulled_follow_up as (
    update follow_up set due_at = now, retry_at = null, created_at = least(created_at, now) from moment
    where (topic, seq) in (select topic, seq from late_follow_up) returning 1
  ), late_payout as materialized (
    select stream from payout, moment where status = 'open' and due_at > longest limit p_max for update of payout skip locked
  ), pulled_payout as (
    update payout set due_at = now from moment where stream in (select stream from late_payout) returning 1
  )
  select (select count(*) from pulled_call)::int + (select count(*) from aged_call)::int + (select count(*) from pulled_follow_up)::int
    + (select count(*) from pulled_payout)::int
$$;

grant execute on function tollbook.pull_due_times to tollbook_writer;
