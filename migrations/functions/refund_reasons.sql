-- Keeps the reason of a payer before the append of its request: a row without that append says nothing, and is pruned.
create or replace function tollbook.put_refund_reason(p_stream text, p_payer text, p_reason text) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  insert into refund_reason (stream, sha256, payer, reason, created_at)
  values (stream_key(p_stream), pg_catalog.sha256(convert_to(p_reason, 'UTF8')), p_payer, p_reason, clock())
  on conflict do nothing
$$;

-- Deletes up to p_max reasons of these wallets; returns how many.
create or replace function tollbook.erase_refund_reasons(p_payers text[], p_max int) returns int
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with gone as (
    delete from refund_reason where (stream, sha256) in (
      select stream, sha256 from refund_reason
      where payer = any (select lower(one) from unnest(p_payers) one) limit p_max)
    returning 1
  )
  select count(*)::int from gone
$$;

grant execute on function tollbook.put_refund_reason, tollbook.erase_refund_reasons to tollbook_writer;
