-- Model chat: accounts of credit, the keys that spend it, the limits that hold in all processes together.

-- What each account has, moved in the transaction of the events that say so: the fold of the credit_* events, kept.
-- Amounts are micro-units of the currency.
create table tollbook.account (
  account_id bigint generated always as identity primary key,
  name text collate "C" not null unique,
  balance bigint not null default 0 check (balance >= 0),
  held bigint not null default 0 check (held >= 0),
  used bigint not null default 0 check (used >= 0),
  created_at timestamptz not null
) with (fillfactor = 50);

-- A key is only ever stored as its hash. A revoked one stays, so that its story can be told.
create table tollbook.api_key (
  key_id bigint generated always as identity primary key,
  account_id bigint not null references tollbook.account,
  hash bytea not null unique,
  -- the first characters, by which its owner knows it
  prefix text not null,
  name text not null,
  -- null: all models; null: no cap of its own
  models text[],
  cap bigint check (cap >= 0),
  -- captured and held through this key: what the cap is compared with
  spent bigint not null default 0 check (spent >= 0),
  created_at timestamptz not null,
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz
) with (fillfactor = 50);
create index api_key_account on tollbook.api_key (account_id);

-- Credit that a completion may cost, from before its upstream is called until it is known. It belongs to a live process.
create table tollbook.chat_hold (
  chat_id uuid primary key,
  account_id bigint not null,
  key_id bigint,
  amount bigint not null check (amount >= 0),
  process_id uuid not null,
  -- the upstream's first byte was seen: from here on it costs something, whatever becomes of the process
  started_at timestamptz,
  created_at timestamptz not null
) with (fillfactor = 50);
create index chat_hold_process on tollbook.chat_hold (process_id);

-- Completions that were charged their whole hold because their process was not seen: what is too much, it gives back once.
create table tollbook.recovered_chat (
  chat_id uuid primary key,
  account_id bigint not null,
  key_id bigint,
  amount bigint not null check (amount > 0),
  recovered_at timestamptz not null
);

-- Who is alive. What a process held that is not seen any more is brought to an end by another.
create table tollbook.process (
  process_id uuid primary key,
  seen_at timestamptz not null,
  -- since when it was seen without a long pause: who was away itself cannot tell who else was
  steady_since timestamptz not null
);

-- The admissions of the last minute of one subject, in milliseconds, and of one UTC day.
create table tollbook.rate_window (
  subject text collate "C" primary key,
  hits bigint[] not null,
  day date not null,
  day_hits int not null,
  -- when a refusal was last written down, in milliseconds: a flood of them is one event a minute
  refused_at bigint not null default 0
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01);
create index rate_window_day on tollbook.rate_window (day);

-- Grants and expiries that were asked for under a name, with what the account had then: the same name moves nothing twice.
-- Kept for ever.
create table tollbook.credit_request (
  request_id text collate "C" primary key,
  op text collate "C" not null,
  account_id bigint not null,
  amount bigint not null,
  balance bigint not null
);

-- Admits one completion, or says why not; nothing is charged for a refusal, and it is news once a minute. Only
-- tollbook.append calls it, under the lane's lock: what it reads here nobody else is changing.
create function tollbook.admit_chat(p_ask json, p_stamp timestamptz) returns json
language plpgsql volatile set search_path = tollbook, pg_temp as $$
declare
  ask record;
  key_row api_key;
  window_row rate_window;
  now_ms bigint := (extract(epoch from p_stamp) * 1000)::bigint;
  today date := (p_stamp at time zone 'UTC')::date;
  today_left_ms bigint := (extract(epoch from (today + 1)::timestamp) * 1000)::bigint - now_ms;
  recent bigint[];
  spent_today int;
  refused text;
  retry_ms bigint;
  available bigint;
  is_news boolean;
begin
  select * into ask from json_to_record(p_ask) as a(chat_id uuid, process_id uuid, subject text, per_minute int, per_day int,
    key_id bigint, account_id bigint, hold bigint, least bigint);

  -- one that is being swept this instant is made anew
  loop
    select * into window_row from rate_window where subject = ask.subject for update;
    exit when found;
    insert into rate_window (subject, hits, day, day_hits) values (ask.subject, '{}', today, 0) on conflict do nothing;
  end loop;
  recent := array(select hit from unnest(window_row.hits) as hit where hit > now_ms - 60000 order by hit);
  spent_today := case when window_row.day = today then window_row.day_hits else 0 end;

  if ask.key_id is not null then
    select * into key_row from api_key where key_id = ask.key_id
      and revoked_at is null and (expires_at is null or expires_at > p_stamp);
    if not found then refused := 'invalid_api_key'; end if;
  end if;
  if refused is null and spent_today >= ask.per_day then
    refused := 'daily_quota_exceeded';
    retry_ms := today_left_ms;
  elsif refused is null and cardinality(recent) >= ask.per_minute then
    refused := 'rate_limit_exceeded';
    retry_ms := recent[1 + cardinality(recent) - ask.per_minute] + 60000 - now_ms;
  elsif refused is null and ask.hold > 0 then
    select account.balance into available from account where account_id = ask.account_id for update;
    available := coalesce(available, 0);
    if available < ask.hold then
      refused := 'insufficient_funds';
    elsif key_row.cap is not null and key_row.spent + ask.hold > key_row.cap then
      refused := 'key_cap_reached';
      available := greatest(key_row.cap - key_row.spent, 0);
    end if;
  end if;
  if refused is not null then
    -- who has the least that it takes asks again, for less
    is_news := window_row.refused_at <= now_ms - 60000 and coalesce(available < ask.least, true);
    if is_news then update rate_window set refused_at = now_ms where subject = ask.subject; end if;
    return json_build_object('code', refused, 'is_news', is_news, 'available', available, 'retry_ms', retry_ms,
      'remaining', greatest(ask.per_minute - cardinality(recent), 0),
      'reset_ms', coalesce(recent[greatest(1, 1 + cardinality(recent) - ask.per_minute)] + 60000 - now_ms, 0),
      'remaining_today', case when ask.per_day is not null then greatest(ask.per_day - spent_today, 0) end,
      'reset_today_ms', today_left_ms);
  end if;

  if ask.hold > 0 then
    update account set balance = balance - ask.hold, held = held + ask.hold where account_id = ask.account_id;
    insert into chat_hold (chat_id, account_id, key_id, amount, process_id, created_at)
      values (ask.chat_id, ask.account_id, ask.key_id, ask.hold, ask.process_id, p_stamp);
  end if;
  if ask.key_id is not null and (ask.hold > 0 or key_row.last_used_at is null or key_row.last_used_at < p_stamp - interval '1 minute') then
    update api_key set spent = spent + ask.hold, last_used_at = p_stamp where key_id = ask.key_id;
  end if;
  update rate_window set hits = recent || now_ms, day = today, day_hits = spent_today + 1 where subject = ask.subject;
  return json_build_object('code', 'ok',
    'remaining', ask.per_minute - cardinality(recent) - 1, 'reset_ms', coalesce(recent[1], now_ms) + 60000 - now_ms,
    'remaining_today', ask.per_day - spent_today - 1, 'reset_today_ms', today_left_ms);
end $$;

-- Whether nobody has seen this process for so long that p_by may end its holds. Never where p_by was not seen all that time
-- itself: where it, or the database, was away, so may have been everybody else.
create function tollbook.is_silent(p_process uuid, p_by uuid, p_silent_secs float8) returns boolean
language sql volatile set search_path = tollbook, pg_temp as $$
  select exists (select from process own
      where own.process_id = p_by and own.steady_since <= since and own.seen_at > lately)
    and not exists (select from process owner where owner.process_id = p_process and owner.seen_at > since)
  from (select now - silence as since, now - silence / 2 as lately
    from (select clock() as now, p_silent_secs * interval '1 second' as silence) moment) past
$$;

-- Ends a chat's hold. 'gone' where another process has ended it, or has seen its upstream begin to answer; where a process
-- ends it that is not its own, also where its own was seen again. Should it have been charged in full meanwhile, what was too
-- much comes back, if the command tells of that: then only is 'gone' news.
create function tollbook.settle_chat(p_move json, p_stamp timestamptz) returns json
language plpgsql volatile set search_path = tollbook, pg_temp as $$
declare
  move record;
  ended record;
begin
  select * into move from json_to_record(p_move) as m(chat_id uuid, captured bigint, released bigint, unstarted boolean,
    recovered_by uuid, silent_secs float8, corrects boolean);
  delete from chat_hold where chat_id = move.chat_id and amount = move.captured + move.released
    and (move.unstarted is not true or started_at is null)
    and (move.recovered_by is null or is_silent(process_id, move.recovered_by, move.silent_secs))
    returning account_id, key_id, amount into ended;
  if found then
    update account set held = held - ended.amount, balance = balance + move.released, used = used + move.captured
      where account_id = ended.account_id;
    update api_key set spent = spent - move.released where key_id = ended.key_id and move.released > 0;
    if move.recovered_by is not null and move.captured > 0 then
      insert into recovered_chat (chat_id, account_id, key_id, amount, recovered_at)
        values (move.chat_id, ended.account_id, ended.key_id, move.captured, p_stamp);
    end if;
    return json_build_object('code', 'ok');
  end if;
  if move.corrects then
    delete from recovered_chat where chat_id = move.chat_id and amount = move.captured + move.released
      returning account_id, key_id into ended;
    if found then
      update account set used = used - move.released, balance = balance + move.released
        where account_id = ended.account_id;
      update api_key set spent = spent - move.released where key_id = ended.key_id;
      return json_build_object('code', 'gone', 'is_news', true);
    end if;
  end if;
  return json_build_object('code', 'gone', 'is_news', false);
end $$;

-- Moves credit as its command's events say. Called like admit_chat. 'gone' where an account of that name is there already, has
-- too little, or would have too much. Under a name that was used before nothing moves: 'repeated' where it was for the same,
-- with what the account had then, else 'request_id_taken'.
create function tollbook.move_credit(p_move json, p_stamp timestamptz) returns json
language plpgsql volatile set search_path = tollbook, pg_temp as $$
declare
  move record;
  earlier credit_request;
  left_over bigint;
begin
  if p_move->>'op' = 'settle' then return settle_chat(p_move, p_stamp); end if;
  select * into move from json_to_record(p_move) as m(op text, account_id bigint, name text, amount bigint, request_id text);
  if move.op = 'open' then
    insert into account (account_id, name, created_at) overriding system value
      values (move.account_id, move.name, p_stamp) on conflict (name) do nothing;
    return json_build_object('code', case when found then 'ok' else 'gone' end);
  end if;
  select * into earlier from credit_request where request_id = move.request_id;
  if found then
    return case when (earlier.op, earlier.account_id, earlier.amount) = (move.op, move.account_id, move.amount)
      then json_build_object('code', 'repeated', 'available', earlier.balance)
      else json_build_object('code', 'request_id_taken') end;
  end if;
  -- a grant or a top-up adds, up to what JSON can count; an expiry takes away what is not held
  update account set balance = balance + case move.op when 'expire' then -move.amount else move.amount end
    where account_id = move.account_id and case move.op
      when 'expire' then balance >= move.amount
      else account.balance + account.held + account.used + move.amount <= 9007199254740991 end
    returning balance into left_over;
  if not found then return json_build_object('code', 'gone'); end if;
  if move.request_id is not null then
    insert into credit_request values (move.request_id, move.op, move.account_id, move.amount, left_over);
  end if;
  return json_build_object('code', 'ok', 'available', left_over);
end $$;

-- The verdicts on a batch's commands about chats and credit, one after the other. A command that shares its stream with an
-- earlier one of the batch is left out: it is deferred, and nothing may have moved for it.
create function tollbook.decide_credit(p_commands json, p_stamp timestamptz) returns json
language plpgsql volatile set search_path = tollbook, pg_temp as $$
declare
  c record;
  verdict json;
  verdicts json[] := '{}';
begin
  for c in
    select t.ord, t.admit, t.credit from (
      select named.*, min(named.ord) over (partition by named.stream) as first from rows from (
        json_to_recordset(p_commands) as (stream text, expect int, claims json, admit json, credit json)
      ) with ordinality as named(stream, expect, claims, admit, credit, ord)
    ) t
    where t.ord = t.first and (t.admit is not null or t.credit is not null) order by t.ord
  loop
    verdict := case when c.admit is not null then admit_chat(c.admit, p_stamp) else move_credit(c.credit, p_stamp) end;
    verdicts := verdicts || json_build_object('ord', c.ord, 'code', verdict->>'code',
      'is_news', coalesce((verdict->>'is_news')::boolean, true), 'detail', verdict);
  end loop;
  return array_to_json(verdicts);
end $$;

-- The upstream has begun to answer these completions.
create function tollbook.start_holds(p_chats uuid[]) returns setof uuid
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  update chat_hold set started_at = coalesce(started_at, clock()) where chat_id = any (p_chats) returning chat_id
$$;

-- A process says that it lives; a pause longer than p_pause_secs begins its steadiness anew.
create function tollbook.beat(p_process uuid, p_pause_secs float8) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  insert into process (process_id, seen_at, steady_since) select p_process, seen, seen from clock() as seen
  on conflict (process_id) do update set seen_at = excluded.seen_at, steady_since = case
    when process.seen_at >= excluded.seen_at - p_pause_secs * interval '1 second' then process.steady_since
    else excluded.seen_at end
$$;

-- Whether a client may show this key: 'known' where it holds; 'unknown' where it does not, which is counted; 'limited' where
-- too many did not in the last minute. The tries of one client go one after the other: none slips by beside another.
create function tollbook.try_api_key(p_subject text, p_per_minute int, p_hash bytea) returns table (code text, retry_ms bigint)
language plpgsql volatile security definer set search_path = tollbook, pg_temp as $$
declare
  window_row rate_window;
  now_ms bigint;
  recent bigint[];
begin
  loop
    select * into window_row from rate_window where subject = p_subject for update;
    exit when found;
    insert into rate_window (subject, hits, day, day_hits) values (p_subject, '{}', (clock() at time zone 'UTC')::date, 0)
      on conflict do nothing;
  end loop;
  now_ms := (extract(epoch from clock()) * 1000)::bigint;
  recent := array(select hit from unnest(window_row.hits) as hit where hit > now_ms - 60000 order by hit);
  if cardinality(recent) >= p_per_minute then
    return query select 'limited', recent[1 + cardinality(recent) - p_per_minute] + 60000 - now_ms;
  elsif exists (select from api_key where hash = p_hash and revoked_at is null and (expires_at is null or expires_at > clock())) then
    return query select 'known', null::bigint;
  else
    update rate_window set hits = recent || now_ms, day = (clock() at time zone 'UTC')::date where subject = p_subject;
    return query select 'unknown', null::bigint;
  end if;
end $$;

-- Drops up to p_max limits that nobody has counted against for two days, and as many processes that ended, and completions
-- that were recovered, long ago. What somebody has in hand this instant is left for the next time: the lane must not wait here.
create function tollbook.sweep_routing(p_max int) returns int
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with idle_window as materialized (
    select subject from rate_window where day < (clock() at time zone 'UTC')::date - 2
    order by day limit p_max for update skip locked
  ), ended_process as materialized (
    select process_id from process where seen_at < clock() - interval '1 day' limit p_max for update skip locked
  ), old_chat as materialized (
    select chat_id from recovered_chat where recovered_at < clock() - interval '1 day' limit p_max for update skip locked
  ), dropped_chat as (
    delete from recovered_chat using old_chat where recovered_chat.chat_id = old_chat.chat_id returning 1
  ), dropped_window as (
    delete from rate_window using idle_window where rate_window.subject = idle_window.subject returning 1
  ), dropped_process as (
    delete from process using ended_process where process.process_id = ended_process.process_id returning 1
  )
  select (select count(*) from dropped_window)::int + (select count(*) from dropped_process)::int
    + (select count(*) from dropped_chat)::int
$$;

-- The number of an account that is about to be opened.
create function tollbook.next_account_id() returns bigint
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  select nextval(pg_get_serial_sequence('tollbook.account', 'account_id'))
$$;

create function tollbook.create_api_key(p_account_id bigint, p_hash bytea, p_prefix text, p_name text, p_models text[],
  p_cap bigint, p_expires_at timestamptz) returns bigint
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  insert into api_key (account_id, hash, prefix, name, models, cap, created_at, expires_at)
  values (p_account_id, p_hash, p_prefix, p_name, p_models, p_cap, clock(), p_expires_at) returning key_id
$$;

-- Ends a key for good; false where it was ended before, or never was.
create function tollbook.revoke_api_key(p_key_id bigint) returns boolean
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with ended as (
    update api_key set revoked_at = clock() where key_id = p_key_id and revoked_at is null returning 1)
  select exists (select from ended)
$$;

revoke execute on all functions in schema tollbook from public;
grant select on all tables in schema tollbook to tollbook_writer;
grant execute on function tollbook.start_holds(uuid[]), tollbook.beat(uuid, float8),
  tollbook.is_silent(uuid, uuid, float8), tollbook.try_api_key(text, int, bytea), tollbook.sweep_routing(int), tollbook.next_account_id(),
  tollbook.create_api_key(bigint, bytea, text, text, text[], bigint, timestamptz),
  tollbook.revoke_api_key(bigint) to tollbook_writer;
