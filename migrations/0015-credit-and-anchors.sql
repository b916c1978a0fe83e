-- What finance reads of each account's credit: sums over the events, with a place of their own in the ledger, so that they
-- catch up by themselves where the other read models are further already.
alter table tollbook.projection add column credit_seq bigint not null default 0;

create table tollbook.account_credit (
  generation int not null,
  account_id bigint not null,
  -- null where the account was never opened under one
  name text collate "C",
  balance bigint not null,
  held bigint not null,
  granted bigint not null,
  topped_up bigint not null,
  -- less what was taken back
  captured bigint not null,
  expired bigint not null,
  last_seq bigint not null,
  primary key (generation, account_id)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
create index account_credit_name on tollbook.account_credit (generation, name);

-- Adds what the events after p_from up to p_to have moved, and moves the generation there; does nothing and says false where
-- it stands elsewhere: sums added twice would not be the same.
create function tollbook.apply_credit(p_generation int, p_from bigint, p_to bigint, p_accounts json)
returns boolean language plpgsql volatile security definer set search_path = tollbook, pg_temp as $$
begin
  -- a generation that was replaced gets no more
  perform from projection where generation = p_generation and credit_seq = p_from
    and generation >= (select active.generation from projection active where active.is_active) for update;
  if not found then return false; end if;
  insert into account_credit as old
  select p_generation, a.* from json_to_recordset(p_accounts) as a(
    account_id bigint, name text, balance bigint, held bigint, granted bigint, topped_up bigint, captured bigint,
    expired bigint, last_seq bigint)
  on conflict (generation, account_id) do update set
    name = coalesce(old.name, excluded.name), balance = old.balance + excluded.balance, held = old.held + excluded.held,
    granted = old.granted + excluded.granted, topped_up = old.topped_up + excluded.topped_up,
    captured = old.captured + excluded.captured, expired = old.expired + excluded.expired, last_seq = excluded.last_seq;
  update projection set credit_seq = p_to, touched_at = clock() where generation = p_generation;
  return true;
end $$;

-- Puts a generation in the place of the one that is read, once all of it is as far; returns the one it replaced, null before
-- that.
create or replace function tollbook.activate_projection(p_generation int) returns int
language plpgsql volatile security definer set search_path = tollbook, pg_temp as $$
declare
  old projection;
begin
  select * into old from projection where is_active for update;
  if not exists (select from projection where generation = p_generation and not is_active
    and seq >= old.seq and credit_seq >= old.credit_seq) then
    return null;
  end if;
  update projection set is_active = false where generation = old.generation;
  update projection set is_active = true where generation = p_generation;
  return old.generation;
end $$;

-- Drops what generations left that nobody reads or builds any more, a piece at a time; returns how many rows went.
create or replace function tollbook.sweep_projections(p_replaced int, p_max int) returns int
language plpgsql volatile security definer set search_path = tollbook, pg_temp as $$
declare
  gone int[];
  swept int;
begin
  select coalesce(array_agg(generation), '{}') into gone from projection
    where not is_active and (generation = p_replaced or touched_at < clock() - interval '1 hour');
  with payments as (
    delete from payment where (generation, seq) in (
      select generation, seq from payment where generation = any (gone) limit p_max) returning 1
  ), calls as (
    delete from paid_call where (generation, call_id) in (
      select generation, call_id from paid_call where generation = any (gone) limit p_max) returning 1
  ), accounts as (
    delete from account_credit where (generation, account_id) in (
      select generation, account_id from account_credit where generation = any (gone) limit p_max) returning 1
  ), days as (
    delete from job_day where ctid in (
      select ctid from job_day where generation = any (gone) limit p_max) returning 1
  )
  select (select count(*) from payments) + (select count(*) from calls) + (select count(*) from accounts)
    + (select count(*) from days) into swept;
  if swept = 0 then delete from projection where generation = any (gone); end if;
  return swept;
end $$;

grant select on tollbook.account_credit to tollbook_writer;
revoke execute on function tollbook.apply_credit(int, bigint, bigint, json) from public;
grant execute on function tollbook.apply_credit(int, bigint, bigint, json) to tollbook_writer;

-- Has an anchor told earlier than it would be: again soon after it failed, or at the end of a process.
create function tollbook.hasten_anchor(p_origin text, p_name text, p_ms int) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  insert into log_anchor as anchor (origin, name, size, due_at)
  values (p_origin, p_name, -1, clock() + p_ms * interval '1 millisecond')
  on conflict (origin, name) do update set due_at = least(anchor.due_at, excluded.due_at)
$$;
revoke execute on function tollbook.hasten_anchor(text, text, int) from public;
grant execute on function tollbook.hasten_anchor(text, text, int) to tollbook_writer;
