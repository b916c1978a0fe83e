-- Begins to offer a price list to version 1 clients, also one that ended before. Prices of every list whose job or token this
-- one does not offer are withdrawn, in all gateways immediately. A price without an amount offers nothing and keeps the earlier ones: its
-- token has no current rate.
create or replace function tollbook.offer_prices(p_list bytea, p_valid_secs int, p_prices json) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  -- one at a time, so that two gateways that start together delete the same rows in turn
  lock table price_list in share row exclusive mode;
  delete from price_list where valid_until <= clock();
  insert into price_list (list_id, offered_at, valid_until) select p_list, now, now + p_valid_secs * interval '1 second' from clock() as now
  on conflict (list_id) do update set offered_at = excluded.offered_at, valid_until = excluded.valid_until;
  insert into price_window (list_id, service_id, job_index, network, transfer_method, asset, pay_to, amount, price_wei, credit_micros)
  select p_list, price.* from json_to_recordset(p_prices) as price(service_id bigint, job_index bigint, network text,
    transfer_method text, asset text, pay_to text, amount numeric, price_wei numeric, credit_micros numeric)
  where amount is not null
  on conflict do nothing;
  delete from price_window where not exists (
    select from json_to_recordset(p_prices) as own(service_id bigint, job_index bigint, network text, transfer_method text, asset text,
        pay_to text)
    where (own.service_id, own.job_index, own.network, own.transfer_method, own.asset, own.pay_to)
        = (price_window.service_id, price_window.job_index, price_window.network, price_window.transfer_method, price_window.asset,
          price_window.pay_to))
$$;

-- The gateway still offers the list. False where it must offer it anew: it has ended meanwhile.
create or replace function tollbook.extend_prices(p_list bytea, p_valid_secs int) returns boolean
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with extended as (
    update price_list set offered_at = now, valid_until = now + p_valid_secs * interval '1 second' from clock() as now
    where list_id = p_list returning 1)
  select exists (select from extended)
$$;

grant execute on function tollbook.offer_prices, tollbook.extend_prices to tollbook_writer;
