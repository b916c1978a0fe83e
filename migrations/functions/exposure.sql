-- Whether a spend may land after its completion starts. The account's exposure must stay within p_limit and within its
-- balance on chain; the spend must follow the account's next nonce there without a gap; and none of its spends has failed.
create or replace function tollbook.expose_spend(p_stream text, p_scope text, p_commitment text, p_nonce numeric, p_amount numeric,
  p_limit numeric, p_next_nonce numeric, p_balance numeric) returns boolean
language plpgsql volatile security definer set search_path = tollbook, pg_temp as $$
begin
  -- serialised per account: a later call sees the exposure of the earlier one
  perform pg_advisory_xact_lock(hashtextextended(p_scope || '/' || p_commitment, 0));
  insert into spend_exposure (stream, scope, commitment, nonce, amount, created_at)
  select p_stream, p_scope, p_commitment, p_nonce, p_amount, clock()
  from (
    select coalesce(sum(amount), 0) + p_amount as total,
      coalesce(sum(amount) filter (where nonce >= p_next_nonce), 0) + p_amount as ahead,
      coalesce(bool_or(status = 'failed'), false) as has_failed,
      p_nonce = p_next_nonce or coalesce(bool_or(nonce = p_nonce - 1), false) as follows
    from spend_exposure where commitment = p_commitment and scope = p_scope
  ) exposed
  where total <= p_limit and ahead <= p_balance and follows and not has_failed
  on conflict do nothing;
  return found;
end $$;

-- Ends a spend's exposure: it landed or was cancelled; or it failed. A spend that was recorded as failed and lands after
-- all no longer counts against its account.
create or replace function tollbook.end_exposure(p_stream text, p_failed boolean) returns void
language plpgsql volatile security definer set search_path = tollbook, pg_temp as $$
begin
  if p_failed then update spend_exposure set status = 'failed' where stream = p_stream;
  else delete from spend_exposure where stream = p_stream;
  end if;
end $$;

grant execute on function tollbook.expose_spend, tollbook.end_exposure to tollbook_writer;
