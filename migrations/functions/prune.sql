-- Every function here deletes at most p_max rows of a kind, so that no backlog exceeds one statement's time, and returns
-- how many it deleted.
--
-- Bodies without a call, results 30 days after their call ended, tree heads that nothing needs, and answers to flushers that ended long ago. The newest are kept whatever their age: every running
-- process refreshes its own, and one that lacks it would take the ledger for a restored one, also where the clock stepped.
create or replace function tollbook.prune_lane(p_max int) returns int
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with old_body as (
    delete from call_body where body_id in (
      select body_id from call_body where created_at < clock() - interval '1 hour'
        and not exists (select from call where call.body_id = call_body.body_id) limit p_max)
    returning 1
  ), old_batch as (
    delete from lane_batch where sender_hash in (
      select sender_hash from (
        select sender_hash, at from lane_batch order by at desc offset 1000) older
      where at < clock() - interval '1 day' limit p_max)
    returning 1
  ), old_result as (
    delete from call_result where (call_id, attempt) in (
      select call_id, attempt from call_result where created_at < clock() - interval '30 days'
        and not exists (select from call where call.call_id = call_result.call_id) limit p_max)
    returning 1
  ), old_head as (
    delete from log_head where (origin, size) in (
      select origin, size from log_head where at < clock() - interval '30 days'
        and not is_head_needed(origin, size, at) limit p_max)
    returning 1
  ), old_gone as (
    delete from runner_gone where (runner, call_id) in (
      select runner, call_id from runner_gone where at < clock() - interval '30 days' limit p_max)
    returning 1
  )
  select (select count(*) from old_body)::int + (select count(*) from old_batch)::int
    + (select count(*) from old_result)::int + (select count(*) from old_head)::int + (select count(*) from old_gone)::int
$$;

-- Follow-ups that could not be completed within 30 days.
create or replace function tollbook.prune_follow_ups(p_max int) returns int
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with old as (
    delete from follow_up where (topic, seq) in (
      select topic, seq from follow_up where created_at < clock() - interval '30 days' limit p_max)
    returning 1
  )
  select count(*)::int from old
$$;

-- Rate windows without a hit for two days, processes without a heartbeat and completions recovered more than a day ago, an
-- operator's request ids after 400 days.
-- Rows that are locked at this moment are skipped: the lane must not wait here.
create or replace function tollbook.prune_chat(p_max int) returns int
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with idle_window as materialized (
    select subject from rate_window where day < (clock() at time zone 'UTC')::date - 2
    order by day limit p_max for update skip locked
  ), ended_process as materialized (
    select process_id from process where heartbeat_at < clock() - interval '1 day' limit p_max for update skip locked
  ), old_chat as materialized (
    select chat_id from recovered_chat where recovered_at < clock() - interval '1 day' limit p_max for update skip locked
  ), dropped_chat as (
    delete from recovered_chat using old_chat where recovered_chat.chat_id = old_chat.chat_id returning 1
  ), dropped_window as (
    delete from rate_window using idle_window where rate_window.subject = idle_window.subject returning 1
  ), dropped_process as (
    delete from process using ended_process where process.process_id = ended_process.process_id returning 1
  ), dropped_request as (
    delete from credit_request where request_id in (
      select request_id from credit_request
      where created_at < clock() - interval '400 days' and position(':' in request_id) = 0 limit p_max)
    returning 1
  )
  select (select count(*) from dropped_request)::int + (select count(*) from dropped_window)::int + (select count(*) from dropped_process)::int
    + (select count(*) from dropped_chat)::int
$$;

-- Expired nonces and links.
create or replace function tollbook.prune_identity(p_max int) returns int
language sql volatile security definer set search_path = identity, pg_temp as $$
  with old_nonce as (
    delete from siwe_nonce where nonce in (
      select nonce from siwe_nonce where issued_at < tollbook.clock() - interval '10 minutes' limit p_max) returning 1
  ), old_verification as (
    delete from verification where id in (
      select id from verification where expires_at < tollbook.clock() - interval '1 day' limit p_max) returning 1
  )
  select (select count(*) from old_nonce)::int + (select count(*) from old_verification)::int
$$;

-- Exposures whose process ended before the completion was answered: nothing was lost by those. Of an account's failed spends
-- all but the last, which keeps it from getting exposure again. Payouts that failed, 30 days after their authorization ended.
create or replace function tollbook.prune_exposures(p_max int) returns int
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with unused as (
    delete from spend_exposure where stream in (
      select open.stream from spend_exposure open
      where open.status = 'open' and open.created_at < clock() - interval '1 day'
        and not exists (select from event where event.stream = open.stream and event.type = 'spend_earned')
      limit p_max)
    returning 1
  ), failed as (
    delete from spend_exposure where stream in (
      select old.stream from spend_exposure old
      where old.status = 'failed' and old.created_at < clock() - interval '30 days'
        and exists (select from spend_exposure later where later.commitment = old.commitment and later.scope = old.scope
          and later.status = 'failed' and (later.nonce, later.stream) > (old.nonce, old.stream))
      limit p_max)
    returning 1
  ), lost as (
    delete from payout where stream in (
      select payout.stream from payout
      where payout.status = 'failed' and payout.created_at < clock() - interval '30 days'
        and coalesce(payout.expiry, 0) < extract(epoch from clock() - interval '30 days') limit p_max)
    returning 1
  )
  select (select count(*) from unused)::int + (select count(*) from failed)::int + (select count(*) from lost)::int
$$;

-- Rows of generations that are neither read nor built any more.
create or replace function tollbook.prune_projections(p_replaced int, p_max int) returns int
language plpgsql volatile security definer set search_path = tollbook, pg_temp as $$
declare
  obsolete int[];
  pruned int;
begin
  select coalesce(array_agg(generation), '{}') into obsolete from projection
    where not is_active and (generation = p_replaced or touched_at < clock() - interval '1 hour');
  with payments as (
    delete from payment where (generation, seq) in (
      select generation, seq from payment where generation = any (obsolete) limit p_max) returning 1
  ), calls as (
    delete from paid_call where (generation, call_id) in (
      select generation, call_id from paid_call where generation = any (obsolete) limit p_max) returning 1
  ), accounts as (
    delete from account_credit where (generation, account_id) in (
      select generation, account_id from account_credit where generation = any (obsolete) limit p_max) returning 1
  ), payees as (
    delete from payee where generation = any (obsolete)
  ), days as (
    delete from job_day where ctid in (
      select ctid from job_day where generation = any (obsolete) limit p_max) returning 1
  )
  select (select count(*) from payments) + (select count(*) from calls) + (select count(*) from accounts)
    + (select count(*) from days) into pruned;
  if pruned = 0 then delete from projection where generation = any (obsolete); end if;
  return pruned;
end $$;

grant execute on function tollbook.prune_lane, tollbook.prune_follow_ups, tollbook.prune_chat, tollbook.prune_identity, tollbook.prune_exposures, tollbook.prune_projections to tollbook_writer;
