-- Rows that live for a configured time ([retention]). Every batch deletes at most p_max rows of one kind and adds them to the sum
-- of its round in the same transaction. The row of the round is locked meanwhile, so that the batches of several gateways take
-- turns and each row is counted once.

-- How long rows of a kind live at least, whatever a configuration says: what could still be delivered, credited twice or
-- needed for a proof is never deleted.
create or replace function tollbook.least_life(p_kind text) returns interval
language sql immutable as $$
  select case p_kind
    when 'call_bodies' then interval '1 hour'
    when 'tree_heads' then interval '30 days'
    when 'follow_ups' then interval '30 days'
    when 'failed_spends' then interval '30 days'
    when 'failed_payouts' then interval '30 days'
    when 'alert_messages' then interval '3 days'
    when 'request_ids' then interval '400 days'
    else interval '1 day'
  end
$$;

-- Deletes up to p_max rows of a kind that are older than p_life_secs; returns how many. Rows that the lane may have locked are
-- skipped: it must not wait here.
-- call_results: each leaves a note of when it was deleted, for its receipt.
-- callbacks: those that have nothing to send. refund_reasons: those that no operator has to read any more.
-- call_bodies: those without a call, so never one that may still be delivered or requeued. failed_spends: of an account's failed
-- exposures all but the last, which keeps it from getting exposure again; payouts that failed, from the end of their authorization.
-- request_ids: those of operators; one with a colon is of a top-up, whose refund may come at any time.
create or replace function tollbook.prune(p_kind text, p_life_secs bigint, p_max int) returns int
language plpgsql volatile security definer set search_path = tollbook, pg_temp as $$
declare
  cutoff constant timestamptz := clock() - greatest(p_life_secs * interval '1 second', least_life(p_kind));
  own_round bigint;
  pruned int;
begin
  own_round := lock_prune_round();
  case p_kind
  when 'call_results' then
    with gone as (
      delete from call_result where (call_id, attempt) in (
        select call_id, attempt from call_result where created_at < cutoff
          and not exists (select from call where call.call_id = call_result.call_id) limit p_max)
      returning call_id, attempt
    )
    insert into deleted_result select call_id, attempt, clock() from gone
    on conflict (call_id, attempt) do update set deleted_at = excluded.deleted_at;
  when 'call_bodies' then
    delete from call_body where body_id in (
      select body_id from call_body where created_at < cutoff
        and not exists (select from call where call.body_id = call_body.body_id) limit p_max);
  when 'callbacks' then
    delete from callback where (stream, binding) in (
      select stream, binding from callback where created_at < cutoff and due_at is null limit p_max);
  when 'refund_reasons' then
    delete from refund_reason where (stream, sha256) in (
      select stream, sha256 from refund_reason where created_at < cutoff
        and not exists (select from payment join projection using (generation)
          join event on event.lane_id = 1 and event.seq = payment.seq
          where is_active and refund_requested_at is not null and event.stream = refund_reason.stream) limit p_max);
  when 'tree_heads' then
    delete from log_head where (origin, size) in (
      select origin, size from log_head where at < cutoff and not is_head_needed(origin, size, at) limit p_max);
  when 'follow_ups' then
    delete from follow_up where (topic, seq) in (
      select topic, seq from follow_up where created_at < cutoff limit p_max);
  when 'failed_spends' then
    delete from spend_exposure where stream in (
      select old.stream from spend_exposure old
      where old.status = 'failed' and old.created_at < cutoff
        and exists (select from spend_exposure later where later.commitment = old.commitment and later.scope = old.scope
          and later.status = 'failed' and (later.nonce, later.stream) > (old.nonce, old.stream))
      limit p_max);
  when 'failed_payouts' then
    delete from payout where stream in (
      select payout.stream from payout
      where payout.status = 'failed' and payout.created_at < cutoff and coalesce(payout.expiry, 0) < extract(epoch from cutoff)
      limit p_max);
  when 'request_ids' then
    delete from credit_request where request_id in (
      select request_id from credit_request where created_at < cutoff and position(':' in request_id) = 0 limit p_max);
  when 'rate_limits' then
    delete from rate_window where subject in (
      select subject from rate_window where day < (cutoff at time zone 'UTC')::date order by day limit p_max for update skip locked);
  when 'operator_tokens' then
    delete from operator_token where token_id in (
      select token_id from operator_token where least(revoked_at, expires_at) < cutoff limit p_max);
  when 'api_keys' then
    delete from api_key where key_id in (
      select key_id from api_key where least(revoked_at, expires_at) < cutoff
        and not exists (select from chat_hold where chat_hold.key_id = api_key.key_id) limit p_max for update skip locked);
  when 'sign_in_links' then
    delete from identity.verification where id in (
      select id from identity.verification where expires_at < cutoff limit p_max);
  when 'alerts' then
    delete from alert where (kind, subject) in (
      select kind, subject from alert where not is_firing and seen_at < cutoff limit p_max);
  when 'alert_messages' then
    delete from task where task_id in (
      select task_id from task where kind in ('alert_message', 'budget_message') and created_at < cutoff limit p_max);
  end case;
  get diagnostics pruned = row_count;
  perform add_pruned(own_round, p_kind, pruned, cutoff);
  return pruned;
end $$;

-- Whether a round is due; then none is until p_lease_ms have passed. A halted ledger is not pruned.
create or replace function tollbook.begin_prune_round(p_lease_ms int) returns boolean
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  select case when is_halted() then false else exists (select from begin_round('prune', '', '', p_lease_ms)) end
$$;

-- The round of this moment. The gateway that deletes holds its row, so that the batches of several gateways take turns.
create or replace function tollbook.lock_prune_round() returns bigint
language sql volatile set search_path = tollbook, pg_temp as $$
  select (payload->>'round')::bigint from task where kind = 'prune' for update
$$;

create or replace function tollbook.add_pruned(p_round bigint, p_kind text, p_count bigint, p_before timestamptz) returns void
language sql volatile set search_path = tollbook, pg_temp as $$
  insert into prune_sum (round, kind, count, before) select p_round, p_kind, p_count, p_before where p_count > 0
  on conflict (round, kind) do update set count = prune_sum.count + excluded.count,
    before = greatest(prune_sum.before, excluded.before)
$$;

-- Adds what a gateway has deleted outside the database.
create or replace function tollbook.note_pruned(p_kind text, p_count bigint, p_life_secs bigint) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  select add_pruned(lock_prune_round(), p_kind, p_count, clock() - p_life_secs * interval '1 second')
$$;

-- Ends the round: what is deleted from now on belongs to the next one. Returns the sums of the rounds that have ended and are not on
-- record yet.
create or replace function tollbook.end_prune_round() returns table (round bigint, kind text, count bigint, before timestamptz)
language plpgsql volatile security definer set search_path = tollbook, pg_temp as $$
#variable_conflict use_column
declare
  current bigint;
begin
  current := lock_prune_round();
  if exists (select from prune_sum where prune_sum.round = current) then
    current := current + 1;
    update task set payload = json_build_object('round', current) where task.kind = 'prune';
  end if;
  return query select round, kind, count, before from prune_sum
    where round < current order by round, kind;
end $$;

-- The sums of a round are on record.
create or replace function tollbook.forget_prune_round(p_round bigint) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  delete from prune_sum where round = p_round and round < lock_prune_round()
$$;

-- What the gateways themselves need for a short time and has no configured life; returns how many rows it deleted. Answers to
-- flushers that ended or slept long ago: the newest are kept whatever their age, because every running process refreshes its own, and one
-- that lacks it cannot tell whether an append that it sends again was recorded, also where the clock stepped. Exposures whose process ended before the
-- completion was answered: nothing was lost by those. Notes about runners, heartbeats, recovered completions, sign-in nonces, refused requests.
create or replace function tollbook.prune_short_lived(p_max int) returns int
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with old_batch as (
    delete from lane_batch where sender_hash in (
      select sender_hash from (
        select sender_hash, at from lane_batch order by at desc offset 1000) older
      where at < clock() - interval '1 day' limit p_max)
    returning 1
  ), old_gone as (
    delete from runner_gone where (runner, call_id) in (
      select runner, call_id from runner_gone where at < clock() - interval '30 days' limit p_max)
    returning 1
  ), unused as (
    delete from spend_exposure where stream in (
      select open.stream from spend_exposure open
      where open.status = 'open' and open.created_at < clock() - interval '1 day'
        and not exists (select from event where event.stream = stream_key(open.stream) and event.type = 'spend_earned')
      limit p_max)
    returning 1
  ), ended_process as materialized (
    select process_id from process where heartbeat_at < clock() - interval '1 day' limit p_max for update skip locked
  ), old_chat as materialized (
    select chat_id from recovered_chat where recovered_at < clock() - interval '1 day' limit p_max for update skip locked
  ), dropped_chat as (
    delete from recovered_chat using old_chat where recovered_chat.chat_id = old_chat.chat_id returning 1
  ), dropped_process as (
    delete from process using ended_process where process.process_id = ended_process.process_id returning 1
  ), old_progress as (
    delete from call_progress where call_id in (
      select call_id from call_progress where reported_at < clock() - interval '1 day' limit p_max)
    returning 1
  ), old_nonce as (
    delete from identity.siwe_nonce where nonce in (
      select nonce from identity.siwe_nonce where issued_at < clock() - interval '10 minutes' limit p_max)
    returning 1
  ), old_guess as (
    delete from identity.factor_guess where (user_id, subject) in (
      select user_id, subject from identity.factor_guess where last_at < clock() - interval '1 day' limit p_max)
    returning 1
  ), old_refusal as (
    delete from refused_request where (key, refused_at) in (
      select key, refused_at from refused_request where refused_at < clock() - interval '20 minutes' limit p_max)
    returning 1
  )
  select (select count(*) from old_batch)::int + (select count(*) from old_gone)::int + (select count(*) from unused)::int
    + (select count(*) from old_progress)::int + (select count(*) from dropped_chat)::int + (select count(*) from dropped_process)::int + (select count(*) from old_nonce)::int
    + (select count(*) from old_guess)::int + (select count(*) from old_refusal)::int
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
  ), usage as (
    delete from usage_day where ctid in (
      select ctid from usage_day where generation = any (obsolete) limit p_max) returning 1
  ), completions as (
    delete from completion where (generation, account_id, seq) in (
      select generation, account_id, seq from completion where generation = any (obsolete) limit p_max) returning 1
  ), postings as (
    delete from posting where (generation, seq, leg) in (
      select generation, seq, leg from posting where generation = any (obsolete) limit p_max) returning 1
  ), items as (
    delete from open_item where (generation, opened, account, commodity) in (
      select generation, opened, account, commodity from open_item where generation = any (obsolete) limit p_max) returning 1
  ), balances as (
    delete from balance_day where ctid in (
      select ctid from balance_day where generation = any (obsolete) limit p_max) returning 1
  ), book_accounts as (
    delete from book_account where (generation, id) in (
      select generation, id from book_account where generation = any (obsolete) limit p_max) returning 1
  ), book_credits as (
    delete from book_credit where (generation, account_id) in (
      select generation, account_id from book_credit where generation = any (obsolete) limit p_max) returning 1
  ), book_commodities as (
    delete from book_commodity where generation = any (obsolete)
  ), book_payees as (
    delete from book_payee where generation = any (obsolete)
  )
  select (select count(*) from payments) + (select count(*) from calls) + (select count(*) from accounts)
    + (select count(*) from days) + (select count(*) from usage) + (select count(*) from completions)
    + (select count(*) from postings) + (select count(*) from balances) + (select count(*) from book_accounts)
    + (select count(*) from book_credits) into pruned;
  if pruned = 0 then delete from projection where generation = any (obsolete); end if;
  return pruned;
end $$;

grant execute on function tollbook.prune, tollbook.note_pruned, tollbook.begin_prune_round, tollbook.end_prune_round,
  tollbook.forget_prune_round, tollbook.prune_short_lived, tollbook.prune_projections to tollbook_writer;
