-- Spends whose model is asked before they have landed: how much of an account's is under way, over all processes together.
create table tollbook.spend_exposure (
  -- of the spend
  stream text collate "C" primary key,
  -- the chain and its contract, and the account there
  scope text collate "C" not null,
  commitment text collate "C" not null,
  nonce numeric not null,
  amount numeric not null,
  -- failed: it did not land, and its account is trusted no more
  status text collate "C" not null default 'open' check (status in ('open', 'failed')),
  created_at timestamptz not null
);
create index spend_exposure_account on tollbook.spend_exposure (commitment, scope);

-- Whether a spend may land later. All that is under way of its account stays within p_limit and within what the chain says
-- the account has; it follows the account's next nonce there without a gap; and none of the account's has ever failed.
create function tollbook.expose_spend(p_stream text, p_scope text, p_commitment text, p_nonce numeric, p_amount numeric,
  p_limit numeric, p_next_nonce numeric, p_balance numeric) returns boolean
language plpgsql volatile security definer set search_path = tollbook, pg_temp as $$
begin
  -- one after the other for each account: who comes second sees who was first
  perform pg_advisory_xact_lock(hashtextextended(p_scope || '/' || p_commitment, 0));
  insert into spend_exposure (stream, scope, commitment, nonce, amount, created_at)
  select p_stream, p_scope, p_commitment, p_nonce, p_amount, clock()
  from (
    select coalesce(sum(amount), 0) + p_amount as total,
      coalesce(sum(amount) filter (where nonce >= p_next_nonce), 0) + p_amount as ahead,
      coalesce(bool_or(status = 'failed'), false) as has_failed,
      p_nonce = p_next_nonce or coalesce(bool_or(nonce = p_nonce - 1), false) as follows
    from spend_exposure where commitment = p_commitment and scope = p_scope
  ) under_way
  where total <= p_limit and ahead <= p_balance and follows and not has_failed
  on conflict do nothing;
  return found;
end $$;

-- A spend is under way no more: it has landed, or was given up; or it failed. One that was said to have failed and has landed
-- all the same speaks against its account no longer.
create function tollbook.end_exposure(p_stream text, p_failed boolean) returns void
language plpgsql volatile security definer set search_path = tollbook, pg_temp as $$
begin
  if p_failed then update spend_exposure set status = 'failed' where stream = p_stream;
  else delete from spend_exposure where stream = p_stream;
  end if;
end $$;

-- Drops up to p_max exposures of processes that ended before they had answered: nothing was lost to those.
create function tollbook.sweep_exposures(p_max int) returns int
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with unused as (
    delete from spend_exposure where stream in (
      select open.stream from spend_exposure open
      where open.status = 'open' and open.created_at < clock() - interval '1 day'
        and not exists (select from event where event.stream = open.stream and event.type = 'spend_earned')
      limit p_max)
    returning 1
  )
  select count(*)::int from unused
$$;

grant select on tollbook.spend_exposure to tollbook_writer;
revoke execute on function tollbook.sweep_exposures(int),
  tollbook.expose_spend(text, text, text, numeric, numeric, numeric, numeric, numeric),
  tollbook.end_exposure(text, boolean) from public;
grant execute on function tollbook.sweep_exposures(int),
  tollbook.expose_spend(text, text, text, numeric, numeric, numeric, numeric, numeric),
  tollbook.end_exposure(text, boolean) to tollbook_writer;
