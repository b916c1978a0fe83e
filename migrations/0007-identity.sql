-- People: their sessions, the credentials and wallets they sign in with. The tables are better-auth's, which writes them
-- itself, so they stand in a schema of their own; no secret is in them as it is used.
create schema identity;

create table identity."user" (
  id uuid primary key default gen_random_uuid(),
  name text not null,
  -- of somebody who only has a wallet, one that no mail reaches
  email text not null unique,
  email_verified boolean not null default false,
  image text,
  created_at timestamptz not null,
  updated_at timestamptz not null
);

-- A session is known by the hash of its token. One that has ended stays until its event is written: its token is no hash any
-- more, and it has expired.
create table identity.session (
  id uuid primary key default gen_random_uuid(),
  user_id uuid not null references identity."user" on delete cascade,
  token text collate "C" not null unique,
  expires_at timestamptz not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  -- the library has these two; they are never filled
  ip_address text check (ip_address = ''),
  user_agent text check (user_agent = ''),
  ended_reason text
);
create index session_owner on identity.session (user_id);
create index session_expiry on identity.session (expires_at);

-- A password (hashed), or an account at an identity provider. What a provider gives access to is not kept.
create table identity.credential (
  id uuid primary key default gen_random_uuid(),
  user_id uuid not null references identity."user" on delete cascade,
  provider_id text not null,
  account_id text not null,
  password text,
  access_token text check (access_token is null),
  refresh_token text check (refresh_token is null),
  id_token text check (id_token is null),
  access_token_expires_at timestamptz,
  refresh_token_expires_at timestamptz,
  scope text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  unique (provider_id, account_id)
);
create index credential_owner on identity.credential (user_id);

-- What a link in a mail, or the way back from an identity provider, is recognised by: identifiers are hashes.
create table identity.verification (
  id uuid primary key default gen_random_uuid(),
  identifier text not null,
  value text not null,
  expires_at timestamptz not null,
  created_at timestamptz not null,
  updated_at timestamptz not null
);
create index verification_identifier on identity.verification (identifier);
create index verification_expiry on identity.verification (expires_at);

create table identity.wallet (
  address text collate "C" primary key check (address ~ '^0x[0-9a-f]{40}$'),
  -- checked at the end: the wallet is taken first, so that of many at once one makes the user
  user_id uuid not null references identity."user" on delete cascade deferrable initially deferred,
  created_at timestamptz not null default tollbook.clock()
);
create index wallet_owner on identity.wallet (user_id);

create table identity.siwe_nonce (
  nonce text collate "C" primary key,
  issued_at timestamptz not null default tollbook.clock()
);
create index siwe_nonce_age on identity.siwe_nonce (issued_at);

-- Whose wallet this is; nobody's becomes that of a new user of the given id. Many at once find the same user.
create function identity.user_of_wallet(p_address text, p_user_id uuid, p_name text, p_email text) returns uuid
language plpgsql volatile set search_path = identity, pg_temp as $$
declare
  owner uuid;
begin
  select user_id into owner from wallet where address = p_address;
  if found then return owner; end if;
  insert into wallet (address, user_id) values (p_address, p_user_id) on conflict do nothing;
  if found then
    insert into "user" (id, name, email, created_at, updated_at)
      values (p_user_id, p_name, p_email, tollbook.clock(), tollbook.clock());
  end if;
  -- a statement of its own: it sees who was first
  select user_id into strict owner from wallet where address = p_address;
  return owner;
end $$;

-- Counts one attempt against each of the subjects, or against none where one of them has had all of its minute: then says
-- after how long that is over, and whether this is the first refusal of this minute.
create function tollbook.take_turns(p_subjects text[], p_per_minute int[], out retry_ms bigint, out is_news boolean)
language plpgsql volatile security definer set search_path = tollbook, pg_temp as $$
declare
  now_ms bigint := (extract(epoch from clock()) * 1000)::bigint;
  today date := (clock() at time zone 'UTC')::date;
  turn record;
  recent bigint[];
  had_all text[] := '{}';
begin
  retry_ms := 0;
  is_news := false;
  -- always in the same order: two that want the same ones never wait for each other
  for turn in select * from unnest(p_subjects, p_per_minute) as t(subject, per_minute) order by t.subject collate "C" loop
    insert into rate_window (subject, hits, day, day_hits) values (turn.subject, '{}', today, 0)
      on conflict (subject) do update set day = excluded.day returning hits into recent;
    recent := array(select hit from unnest(recent) as hit where hit > now_ms - 60000 order by hit);
    if cardinality(recent) >= turn.per_minute then
      had_all := had_all || turn.subject;
      retry_ms := greatest(retry_ms, recent[1 + cardinality(recent) - turn.per_minute] + 60000 - now_ms, 1);
    end if;
  end loop;
  if retry_ms > 0 then
    update rate_window set refused_at = now_ms / 60000 where subject = any (had_all) and refused_at < now_ms / 60000;
    is_news := found;
    -- a client that goes on, each time with another name, leaves none of them here
    delete from rate_window where subject = any (p_subjects) and hits = '{}';
  else
    update rate_window set hits = array(select hit from unnest(hits) as hit where hit > now_ms - 60000) || now_ms
      where subject = any (p_subjects);
  end if;
end $$;

-- Counts one failed authentication of a client; false where it has had too many in the last minute. Only looks where
-- p_counts is false.
create function tollbook.note_auth_failure(p_subject text, p_per_minute int, p_counts boolean) returns boolean
language plpgsql volatile security definer set search_path = tollbook, pg_temp as $$
declare
  now_ms bigint := (extract(epoch from clock()) * 1000)::bigint;
  recent bigint[];
begin
  if p_counts then
    insert into rate_window (subject, hits, day, day_hits) values (p_subject, '{}', (clock() at time zone 'UTC')::date, 0)
      on conflict do nothing;
  end if;
  select array(select hit from unnest(hits) as hit where hit > now_ms - 60000 order by hit) into recent
    from rate_window where subject = p_subject for update;
  if p_counts then
    update rate_window set hits = (recent || now_ms)[greatest(1, cardinality(recent) + 2 - p_per_minute):],
      day = (clock() at time zone 'UTC')::date where subject = p_subject;
  end if;
  return coalesce(cardinality(recent), 0) < p_per_minute;
end $$;

-- Drops up to p_max nonces and links whose time is over.
create function tollbook.sweep_identity(p_max int) returns int
language sql volatile security definer set search_path = identity, pg_temp as $$
  with old_nonce as (
    delete from siwe_nonce where nonce in (
      select nonce from siwe_nonce where issued_at < tollbook.clock() - interval '10 minutes' limit p_max) returning 1
  ), old_verification as (
    delete from verification where id in (
      select id from verification where expires_at < tollbook.clock() - interval '1 day' limit p_max) returning 1
  )
  select (select count(*) from old_nonce)::int + (select count(*) from old_verification)::int
$$;

grant usage on schema identity to tollbook_writer;
grant select, insert, update, delete on all tables in schema identity to tollbook_writer;
revoke execute on function identity.user_of_wallet(text, uuid, text, text), tollbook.take_turns(text[], int[]),
  tollbook.note_auth_failure(text, int, boolean),
  tollbook.sweep_identity(int) from public;
grant execute on function identity.user_of_wallet(text, uuid, text, text), tollbook.take_turns(text[], int[]),
  tollbook.note_auth_failure(text, int, boolean),
  tollbook.sweep_identity(int) to tollbook_writer;
