-- Takes up to p_max due payouts without a transaction, the soonest to expire first; no other process gets them for
-- p_lease_secs.
create or replace function tollbook.take_new_payouts(p_max int, p_lease_secs int) returns table (stream text, attempts int)
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with due as materialized (
    select payout.stream from payout where status = 'open' and transaction is null and due_at <= clock() and not is_halted()
    order by expiry nulls first, due_at limit p_max for update skip locked
  ), taken as (
    update payout set due_at = clock() + p_lease_secs * interval '1 second'
    where payout.stream in (select due.stream from due)
    returning payout.*
  )
  select taken.stream, taken.attempts from taken order by expiry nulls first
$$;

-- The same for payouts whose transaction is to be checked, the longest due first.
create or replace function tollbook.take_sent_payouts(p_max int, p_lease_secs int)
returns table (stream text, attempts int, transaction text, checks int)
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with due as materialized (
    select payout.stream from payout where status = 'open' and transaction is not null and due_at <= clock() and not is_halted()
    order by due_at limit p_max for update skip locked
  )
  update payout set due_at = clock() + p_lease_secs * interval '1 second'
  where payout.stream in (select due.stream from due)
  returning payout.stream, payout.attempts, payout.transaction, payout.checks
$$;

-- Records the transaction of a payout, and when it is checked again. The payout has no failed attempt any more.
create or replace function tollbook.watch_payout(p_stream text, p_transaction text, p_delay_ms int) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  update payout set transaction = p_transaction, checks = case when transaction = p_transaction then checks + 1 else 1 end,
    attempts = 0, last_reason = null, due_at = clock() + p_delay_ms * interval '1 millisecond'
  where stream = p_stream and status = 'open'
$$;

-- The transaction of a payout will not land: the payout is due immediately to be sent again.
create or replace function tollbook.resend_payout(p_stream text, p_reason text) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  update payout set transaction = null, checks = 0, attempts = attempts + 1, last_reason = p_reason, due_at = clock()
  where stream = p_stream and status = 'open'
$$;

-- Records why a spend could not be paid out, and when it is tried again.
create or replace function tollbook.postpone_payout(p_stream text, p_delay_ms int, p_reason text) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  update payout set attempts = attempts + 1, last_reason = p_reason, due_at = clock() + p_delay_ms * interval '1 millisecond'
  where stream = p_stream and status = 'open'
$$;

-- Ends a payout: done, or, with a reason, failed for good.
create or replace function tollbook.end_payout(p_stream text, p_reason text) returns void
language plpgsql volatile security definer set search_path = tollbook, pg_temp as $$
begin
  if p_reason is null then delete from payout where stream = p_stream;
  else update payout set status = 'failed', attempts = attempts + 1, last_reason = p_reason where stream = p_stream;
  end if;
end $$;

grant execute on function tollbook.take_new_payouts, tollbook.take_sent_payouts, tollbook.watch_payout, tollbook.resend_payout,
  tollbook.postpone_payout, tollbook.end_payout to tollbook_writer;
