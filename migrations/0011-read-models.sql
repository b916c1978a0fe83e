-- What finance reads: made from the events, in their order, behind the lane. A rebuild makes another generation beside the
-- one that is read, and takes its place once it has caught up.
create table tollbook.projection (
  generation int primary key,
  seq bigint not null,
  is_active boolean not null,
  touched_at timestamptz not null
);
create unique index projection_active on tollbook.projection (is_active) where is_active;
insert into tollbook.projection values (1, 0, true, now());

-- A payment, named by the event that started it.
create table tollbook.payment (
  generation int not null,
  seq bigint not null,
  quote_digest text collate "C" not null,
  at timestamptz not null,
  service_id bigint not null,
  job_index bigint not null,
  network text collate "C" not null,
  asset text collate "C" not null,
  symbol text collate "C" not null,
  decimals int not null,
  amount numeric not null,
  payer text collate "C" not null,
  pay_to text collate "C" not null,
  state text collate "C" not null,
  transaction text collate "C",
  block_number numeric,
  call_id bigint,
  settled_at timestamptz,
  last_seq bigint not null,
  primary key (generation, seq)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
create index payment_at on tollbook.payment (generation, at, seq);
create index payment_payer on tollbook.payment (generation, payer, seq);
create index payment_state on tollbook.payment (generation, state, seq);
create index payment_job on tollbook.payment (generation, service_id, job_index, seq);

-- A paid call, under the payment that bought it.
create table tollbook.paid_call (
  generation int not null,
  call_id bigint not null,
  seq bigint not null,
  quote_digest text collate "C" not null,
  service_id bigint not null,
  job_index bigint not null,
  status text collate "C" not null,
  attempts int not null,
  enqueued_at timestamptz not null,
  ended_at timestamptz,
  primary key (generation, call_id)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
create index paid_call_status on tollbook.paid_call (generation, status, call_id);

-- What each job earned on each day (UTC) of settlement, by token, and what became of those calls.
create table tollbook.job_day (
  generation int not null,
  day date not null,
  service_id bigint not null,
  job_index bigint not null,
  network text collate "C" not null,
  asset text collate "C" not null,
  symbol text collate "C" not null,
  decimals int not null,
  payments bigint not null,
  amount numeric not null,
  completed bigint not null,
  dead_lettered bigint not null,
  primary key (generation, day, service_id, job_index, network, asset)
) with (fillfactor = 50);

-- Writes what the events after p_from up to p_to have changed, and moves the generation there; does nothing and says false
-- where it stands elsewhere. Rows are whole: written twice they are the same.
create function tollbook.apply_projection(p_generation int, p_from bigint, p_to bigint, p_payments json, p_calls json)
returns boolean language plpgsql volatile security definer set search_path = tollbook, pg_temp as $$
begin
  -- a generation that was replaced gets no more
  perform from projection where generation = p_generation and seq = p_from
    and generation >= (select active.generation from projection active where active.is_active) for update;
  if not found then return false; end if;
  with incoming as materialized (
    select r.* from json_to_recordset(p_payments) as r(
      seq bigint, quote_digest text, at timestamptz, service_id bigint, job_index bigint, network text, asset text,
      symbol text, decimals int, amount numeric, payer text, pay_to text, state text, transaction text,
      block_number numeric, call_id bigint, settled_at timestamptz, last_seq bigint)
  ), counted as (
    select (settled_at at time zone 'UTC')::date as day, service_id, job_index, network, asset, symbol, decimals,
      1 as payments, amount, (state = 'completed')::int as completed, (state = 'dead_lettered')::int as dead_lettered
    from incoming where settled_at is not null
    union all
    select (old.settled_at at time zone 'UTC')::date, old.service_id, old.job_index, old.network, old.asset, old.symbol,
      old.decimals, -1, -old.amount, -(old.state = 'completed')::int, -(old.state = 'dead_lettered')::int
    from payment old join incoming using (seq) where old.generation = p_generation and old.settled_at is not null
  ), totals as (
    insert into job_day
    select p_generation, day, service_id, job_index, network, asset, min(symbol), min(decimals), sum(payments), sum(amount),
      sum(completed), sum(dead_lettered)
    from counted group by day, service_id, job_index, network, asset
    having sum(payments) <> 0 or sum(amount) <> 0 or sum(completed) <> 0 or sum(dead_lettered) <> 0
    on conflict (generation, day, service_id, job_index, network, asset) do update set
      payments = job_day.payments + excluded.payments, amount = job_day.amount + excluded.amount,
      completed = job_day.completed + excluded.completed, dead_lettered = job_day.dead_lettered + excluded.dead_lettered
  ), calls as (
    insert into paid_call
    select p_generation, c.* from json_to_recordset(p_calls) as c(
      call_id bigint, seq bigint, quote_digest text, service_id bigint, job_index bigint, status text, attempts int,
      enqueued_at timestamptz, ended_at timestamptz)
    on conflict (generation, call_id) do update set
      seq = excluded.seq, quote_digest = excluded.quote_digest, status = excluded.status, attempts = excluded.attempts,
      enqueued_at = excluded.enqueued_at, ended_at = excluded.ended_at
  )
  insert into payment
  select p_generation, i.seq, i.quote_digest, i.at, i.service_id, i.job_index, i.network, i.asset, i.symbol, i.decimals,
    i.amount, i.payer, i.pay_to, i.state, i.transaction, i.block_number, i.call_id, i.settled_at, i.last_seq
  from incoming i
  on conflict (generation, seq) do update set
    state = excluded.state, transaction = excluded.transaction, block_number = excluded.block_number,
    call_id = excluded.call_id, settled_at = excluded.settled_at, last_seq = excluded.last_seq;
  update projection set seq = p_to, touched_at = clock() where generation = p_generation;
  return true;
end $$;

-- Begins another generation; returns its number.
create function tollbook.begin_projection() returns int
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  insert into projection select max(generation) + 1, 0, false, clock() from projection returning generation
$$;

-- Puts a generation in the place of the one that is read, once it is as far; returns the one it replaced, null before that.
create function tollbook.activate_projection(p_generation int) returns int
language plpgsql volatile security definer set search_path = tollbook, pg_temp as $$
declare
  old projection;
begin
  select * into old from projection where is_active for update;
  if not exists (select from projection where generation = p_generation and not is_active and seq >= old.seq) then
    return null;
  end if;
  update projection set is_active = false where generation = old.generation;
  update projection set is_active = true where generation = p_generation;
  return old.generation;
end $$;

-- Drops what generations left that nobody reads or builds any more, a piece at a time; returns how many rows went.
create function tollbook.sweep_projections(p_replaced int, p_max int) returns int
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
  ), days as (
    delete from job_day where ctid in (
      select ctid from job_day where generation = any (gone) limit p_max) returning 1
  )
  select (select count(*) from payments) + (select count(*) from calls) + (select count(*) from days) into swept;
  if swept = 0 then delete from projection where generation = any (gone); end if;
  return swept;
end $$;

grant select on tollbook.projection, tollbook.payment, tollbook.paid_call, tollbook.job_day to tollbook_writer;
revoke execute on function tollbook.apply_projection(int, bigint, bigint, json, json), tollbook.begin_projection(),
  tollbook.activate_projection(int), tollbook.sweep_projections(int, int) from public;
grant execute on function tollbook.apply_projection(int, bigint, bigint, json, json), tollbook.begin_projection(),
  tollbook.activate_projection(int), tollbook.sweep_projections(int, int) to tollbook_writer;
