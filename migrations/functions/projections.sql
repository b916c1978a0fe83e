-- An address, or the hash of a transaction, as the read models keep it, and as it is written.
create or replace function tollbook.hex_bytes(p_text text) returns bytea language sql immutable as $$
  select decode(substr(p_text, 3), 'hex')
$$;
create or replace function tollbook.hex_text(p_bytes bytea) returns text language sql immutable as $$
  select '0x' || encode(p_bytes, 'hex')
$$;

-- The postings of a step, and what the next step needs. Called by apply_projection, whose plans and lock it has. The accounts of
-- postings are places, from 1, in the list of accounts.
create or replace function tollbook.apply_books(p_generation int, p_books json) returns void
language plpgsql volatile set search_path = tollbook, pg_temp as $$
declare
  ids int[];
begin
  insert into book_account (generation, id, name)
  select p_generation, (select coalesce(max(id), 0) from book_account where generation = p_generation) + row_number() over (order by place), name
  from json_array_elements_text(p_books->'accounts') with ordinality as used(name, place)
  where not exists (select from book_account known where known.generation = p_generation and known.name = used.name);
  select array_agg(known.id order by used.place) into ids
  from json_array_elements_text(p_books->'accounts') with ordinality as used(name, place)
  join book_account known on known.generation = p_generation and known.name = used.name;
  insert into book_commodity (generation, id, decimals, key, name, tag, symbol, network, asset)
  select p_generation, c.* from json_to_recordset(p_books->'commodities') as c(
    id int, decimals int, key text, name text, tag text, symbol text, network text, asset text)
  -- only the currency of credit, which no event may have said at first
  on conflict (generation, id) do update set name = excluded.name, tag = excluded.tag, symbol = excluded.symbol;
  insert into book_payee (generation, network, address, since)
  select p_generation, p.* from json_to_recordset(p_books->'payees') as p(network text, address text, since bigint);
  insert into book_credit (generation, account_id, granted, bought)
  select p_generation, c.* from json_to_recordset(p_books->'credit') as c(account_id bigint, granted bigint, bought bigint)
  on conflict (generation, account_id) do update set granted = excluded.granted, bought = excluded.bought;
  with given as materialized (
    select seq, leg, day, category, ids[debit] as debit, ids[credit] as credit, commodity, atoms, quote
    from json_to_recordset(p_books->'postings') as p(seq bigint, leg smallint, day date, category text, debit int, credit int,
      commodity int, atoms numeric, quote text)
  ), posted as (
    insert into posting (generation, debit, seq, credit, commodity, leg, category, atoms, quote)
    select p_generation, debit, seq, credit, commodity, leg, category, atoms, stream_key(quote) from given
  ), sides as (
    select debit as account, commodity, day, atoms as debits, 0 as credits from given
    union all
    select credit, commodity, day, 0, atoms from given
  )
  insert into balance_day as old (generation, account, commodity, day, debits, credits)
  select p_generation, account, commodity, day, sum(debits), sum(credits) from sides group by account, commodity, day
  on conflict (generation, account, commodity, day) do update set
    debits = old.debits + excluded.debits, credits = old.credits + excluded.credits;
  update open_item set closed = c.closed
  from json_to_recordset(p_books->'ended_items') as c(account int, opened bigint, closed bigint, commodity int)
  where open_item.generation = p_generation and open_item.opened = c.opened and open_item.account = c.account and open_item.commodity = c.commodity;
  insert into open_item (generation, account, opened, closed, commodity, name, counterparty, lots, taken)
  select p_generation, coalesce(ids[i.account], 0), i.opened, i.closed, i.commodity, stream_key(i.name), i.counterparty, i.lots, i.taken
  from json_to_recordset(p_books->'items') as i(account int, opened bigint, closed bigint, commodity int, name text, counterparty text,
    lots json, taken json);
end $$;

-- Writes what the events after p_from up to p_to have changed and moves the generation's cursor there. False, with nothing
-- changed, where the cursor is elsewhere, or p_to is beyond the last event. Rows of payments and calls are complete; those of
-- accounts and usage are added, and must not be added twice. A gateway of an earlier version gives no postings, or no open items: the
-- generation is without them then, and one of this version builds another.
create or replace function tollbook.apply_projection(p_generation int, p_from bigint, p_to bigint, p_payments json, p_calls json,
  p_accounts json, p_usage json, p_completions json, p_books json default null)
returns boolean language plpgsql volatile security definer set search_path = tollbook, pg_temp
-- Always the same plan of index look-ups, also when it was made for empty tables. Planned for each step, as PostgreSQL would choose,
-- the statement below took as long to plan as to write fifty payments.
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
begin
  -- A generation that was replaced is not updated any more. No other process writes its rows from here on, so they need no
  -- `on conflict`, which writes a lock for each row that it updates and a confirmation for each that it inserts.
  perform from projection where generation = p_generation and seq = p_from and p_to <= (select max(lane.seq) from lane)
    and generation >= (select active.generation from projection active where active.is_active) for update;
  if not found then return false; end if;
  with given as materialized (
    select r.* from json_to_recordset(p_payments) as r(
      seq bigint, at timestamptz, service_id bigint, job_index bigint, network text, asset text,
      symbol text, decimals int, amount numeric, payer text, pay_to text, state text, transaction text,
      block_number numeric, call_id bigint, settled_at timestamptz, refunded_at timestamptz, refund_transaction text,
      refund_due text, refund_due_since timestamptz, refund_started_at timestamptz, refund_requested_at timestamptz, quote_source text,
      last_seq bigint, refunded_amount numeric)
  ), incoming as materialized (
    -- each row is looked up by itself, and updated at its place: a join that was planned for an empty table reads all of it
    select given.*, old.place, old.state as old_state, old.amount as old_amount, old.settled_at as old_settled_at,
      old.service_id as old_service_id, old.job_index as old_job_index, old.refunded_amount as old_refunded
    from given left join lateral (
      select payment.ctid as place, payment.state, payment.amount, payment.settled_at, payment.service_id, payment.job_index,
        payment.refunded_amount
      from payment where payment.generation = p_generation and payment.seq = given.seq offset 0
    ) old on true
  ), counted as (
    select (settled_at at time zone 'UTC')::date as day, service_id, job_index, network, asset, symbol, decimals,
      1 as payments, amount, (state = 'completed')::int as completed, (state = 'dead_lettered')::int as dead_lettered,
      (state = 'refunded')::int as refunded, refunded_amount
    from incoming where settled_at is not null and service_id is not null
    union all
    select (old_settled_at at time zone 'UTC')::date, old_service_id, old_job_index, network, asset, symbol,
      decimals, -1, -old_amount, -(old_state = 'completed')::int, -(old_state = 'dead_lettered')::int,
      -(old_state = 'refunded')::int, -old_refunded
    from incoming where old_settled_at is not null and old_service_id is not null
  ), totals as (
    insert into job_day (generation, day, service_id, job_index, network, asset, symbol, decimals, payments, amount,
      completed, dead_lettered, refunded, refunded_amount)
    select p_generation, day, service_id, job_index, network, asset, min(symbol), min(decimals), sum(payments), sum(amount),
      sum(completed), sum(dead_lettered), sum(refunded), sum(refunded_amount)
    from counted group by day, service_id, job_index, network, asset
    having sum(payments) <> 0 or sum(amount) <> 0 or sum(completed) <> 0 or sum(dead_lettered) <> 0
      or sum(refunded) <> 0 or sum(refunded_amount) <> 0
    on conflict (generation, day, service_id, job_index, network, asset) do update set
      payments = job_day.payments + excluded.payments, amount = job_day.amount + excluded.amount,
      completed = job_day.completed + excluded.completed, dead_lettered = job_day.dead_lettered + excluded.dead_lettered,
      refunded = job_day.refunded + excluded.refunded, refunded_amount = job_day.refunded_amount + excluded.refunded_amount
  ), taken as (
    insert into payee (generation, network, asset, pay_to, symbol, decimals)
    select p_generation, network, asset, pay_to, min(symbol), min(decimals) from incoming where place is null
    group by network, asset, pay_to
    on conflict do nothing
  ), incoming_call as materialized (
    select c.*, old.place from json_to_recordset(p_calls) as c(
      call_id bigint, seq bigint, service_id bigint, job_index bigint, status text, attempts int,
      enqueued_at timestamptz, ended_at timestamptz)
    left join lateral (
      select paid_call.ctid as place from paid_call
      where paid_call.generation = p_generation and paid_call.call_id = c.call_id offset 0
    ) old on true
  ), changed_call as (
    update paid_call set seq = c.seq, status = c.status, attempts = c.attempts, enqueued_at = c.enqueued_at, ended_at = c.ended_at
    from incoming_call c where paid_call.ctid = c.place and c.status is not null
  ), withdrawn_call as (
    delete from paid_call using incoming_call c where paid_call.ctid = c.place and c.status is null
  ), added_call as (
    insert into paid_call (generation, call_id, seq, service_id, job_index, status, attempts, enqueued_at, ended_at)
    select p_generation, call_id, seq, service_id, job_index, status, attempts, enqueued_at, ended_at
    from incoming_call where place is null and status is not null
  ), changed as (
    update payment set
      service_id = i.service_id, job_index = i.job_index, state = i.state, transaction = hex_bytes(i.transaction),
      block_number = i.block_number, call_id = i.call_id, settled_at = i.settled_at, last_seq = i.last_seq,
      refunded_at = i.refunded_at, refund_transaction = hex_bytes(i.refund_transaction),
      refund_due = i.refund_due, refund_due_since = i.refund_due_since, refund_started_at = i.refund_started_at,
      refund_requested_at = i.refund_requested_at, amount = i.amount, refunded_amount = i.refunded_amount
    from incoming i where payment.ctid = i.place
  )
  insert into payment (generation, seq, at, service_id, job_index, network, asset, symbol, decimals, amount,
    payer, pay_to, state, transaction, block_number, call_id, settled_at, last_seq, refunded_at, refund_transaction,
    refund_due, refund_due_since, refund_started_at, refund_requested_at, quote_source, refunded_amount)
  select p_generation, seq, at, service_id, job_index, network, hex_bytes(asset), symbol, decimals,
    amount, hex_bytes(payer), hex_bytes(pay_to), state, hex_bytes(transaction), block_number, call_id, settled_at, last_seq,
    refunded_at, hex_bytes(refund_transaction), refund_due, refund_due_since, refund_started_at, refund_requested_at, quote_source,
    refunded_amount
  from incoming where place is null;
  insert into account_credit as old
  select p_generation, a.* from json_to_recordset(p_accounts) as a(
    account_id bigint, name text, balance bigint, held bigint, granted bigint, topped_up bigint, captured bigint,
    expired bigint, last_seq bigint)
  on conflict (generation, account_id) do update set
    name = coalesce(old.name, excluded.name), balance = old.balance + excluded.balance, held = old.held + excluded.held,
    granted = old.granted + excluded.granted, topped_up = old.topped_up + excluded.topped_up,
    captured = old.captured + excluded.captured, expired = old.expired + excluded.expired, last_seq = excluded.last_seq;
  insert into usage_day as old (generation, account_id, day, model, key_id, requests, failed, prompt_tokens, completion_tokens,
    cached_tokens, cost)
  select p_generation, u.account_id, u.day, u.model, u.key_id, u.requests, u.failed, u.prompt_tokens, u.completion_tokens,
    u.cached_tokens, u.cost
  from json_to_recordset(p_usage) as u(account_id bigint, day date, model text, key_id bigint, requests bigint, failed bigint,
    prompt_tokens numeric, completion_tokens numeric, cached_tokens numeric, cost bigint)
  on conflict (generation, account_id, day, model, key_id) do update set
    requests = old.requests + excluded.requests, failed = old.failed + excluded.failed,
    prompt_tokens = old.prompt_tokens + excluded.prompt_tokens,
    completion_tokens = old.completion_tokens + excluded.completion_tokens,
    cached_tokens = old.cached_tokens + excluded.cached_tokens, cost = old.cost + excluded.cost;
  insert into completion as old (generation, account_id, seq, at, key_id, prompt_tokens, completion_tokens, cached_tokens, cost, chat_id,
    status, model)
  select p_generation, c.account_id, c.seq, c.at, c.key_id, c.prompt_tokens, c.completion_tokens, c.cached_tokens, c.cost, c.chat_id,
    c.status, c.model
  from json_to_recordset(p_completions) as c(account_id bigint, seq bigint, at timestamptz, key_id bigint, prompt_tokens bigint,
    completion_tokens bigint, cached_tokens bigint, cost bigint, chat_id uuid, status text, model text)
  on conflict (generation, account_id, seq) do update set status = excluded.status, prompt_tokens = excluded.prompt_tokens,
    completion_tokens = excluded.completion_tokens, cached_tokens = excluded.cached_tokens, cost = excluded.cost
    where (old.status, old.cost) is distinct from (excluded.status, excluded.cost);
  if p_books is not null then perform apply_books(p_generation, p_books); end if;
  update projection set seq = p_to, touched_at = clock(), has_postings = has_postings and p_books->'items' is not null where generation = p_generation;
  return true;
end $$;

-- A place before which all completions of an account were admitted before p_from, and from which on none was.
create or replace function tollbook.first_completion_since(p_generation int, p_account_id bigint, p_from timestamptz) returns bigint
language plpgsql stable set search_path = tollbook, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  low bigint := 0;
  high bigint;
  middle bigint;
  probe record;
begin
  select coalesce(max(seq), 0) + 1 into high from completion where generation = p_generation and account_id = p_account_id;
  while low + 1 < high loop
    middle := (low + high) / 2;
    select seq, at into probe from completion
      where generation = p_generation and account_id = p_account_id and seq >= middle and seq < high order by seq limit 1;
    if found and probe.at < p_from then low := probe.seq; else high := middle; end if;
  end loop;
  return high;
end $$;

-- A place before which all payments were started before p_from, and from which on none was. Times never go back in the ledger:
-- found by halving, where an index on the time would cost every payment.
create or replace function tollbook.first_payment_since(p_generation int, p_from timestamptz) returns bigint
language plpgsql stable set search_path = tollbook, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  low bigint := 0;
  high bigint;
  middle bigint;
  probe record;
begin
  select coalesce(max(seq), 0) + 1 into high from payment where generation = p_generation;
  while low + 1 < high loop
    middle := (low + high) / 2;
    select seq, at into probe from payment where generation = p_generation and seq >= middle and seq < high
      order by seq limit 1;
    if found and probe.at < p_from then low := probe.seq; else high := middle; end if;
  end loop;
  return high;
end $$;

-- The last event that was recorded before a moment; 0 where there is none. Times never go back in the ledger: found by halving.
create or replace function tollbook.last_event_before(p_moment timestamptz) returns bigint
language plpgsql stable set search_path = tollbook, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  low bigint := 0;
  high bigint;
  middle bigint;
  probe record;
begin
  select coalesce(max(seq), 0) + 1 into high from event where lane_id = 1;
  while low + 1 < high loop
    middle := (low + high) / 2;
    -- an event that somebody removed hides none after it
    select seq, at into probe from event where lane_id = 1 and seq >= middle and seq < high order by seq limit 1;
    if found and probe.at < p_moment then low := probe.seq; else high := middle; end if;
  end loop;
  return low;
end $$;

-- Starts another generation; returns its number.
create or replace function tollbook.begin_projection() returns int
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  insert into projection (generation, seq, is_active, touched_at, has_postings)
  select max(generation) + 1, 0, false, clock(), true from projection returning generation
$$;

-- Makes a generation the active one, where it has caught up with it; returns the one it replaced, null where it has not.
create or replace function tollbook.activate_projection(p_generation int) returns int
language plpgsql volatile security definer set search_path = tollbook, pg_temp as $$
declare
  old projection;
begin
  select * into old from projection where is_active for update;
  if not exists (select from projection where generation = p_generation and not is_active
    and seq >= old.seq) then
    return null;
  end if;
  update projection set is_active = false where generation = old.generation;
  update projection set is_active = true where generation = p_generation;
  return old.generation;
end $$;

grant execute on function tollbook.hex_bytes, tollbook.hex_text, tollbook.first_payment_since, tollbook.first_completion_since, tollbook.last_event_before
  to tollbook_reader;
grant execute on function tollbook.hex_bytes, tollbook.hex_text, tollbook.apply_projection, tollbook.first_payment_since, tollbook.first_completion_since,
  tollbook.last_event_before,
  tollbook.begin_projection, tollbook.activate_projection to tollbook_writer;
