-- The id of an account that is about to be opened.
create or replace function tollbook.next_account_id() returns bigint
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  select nextval(pg_get_serial_sequence('tollbook.account', 'account_id'))
$$;

-- The account of a user, opened when there is none. Its opening is recorded with its first credit, so that a sign-up alone, which anyone can
-- repeat, leaves no event of it.
create or replace function tollbook.open_user_account(p_user_id uuid)
  returns table (account_id bigint, is_new boolean, is_recorded boolean)
language plpgsql volatile security definer set search_path = tollbook, pg_temp as $$
#variable_conflict use_column
begin
  insert into account (name, created_at) values ('user:' || p_user_id, clock()) on conflict (name) do nothing;
  is_new := found;
  -- a new statement: it sees the row of the call that came first
  return query select account_id, is_new, recorded_at is not null from account where name = 'user:' || p_user_id;
end $$;

-- No character of a key is stored besides its hash.
create or replace function tollbook.create_api_key(p_account_id bigint, p_hash bytea, p_name text, p_models text[],
  p_cap bigint, p_expires_at timestamptz, p_is_of_user boolean, p_budget bigint, p_budget_period text) returns bigint
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  insert into api_key (account_id, hash, name, models, cap, created_at, expires_at, is_of_user, budget, budget_period)
  values (p_account_id, p_hash, p_name, p_models, p_cap, clock(), p_expires_at, p_is_of_user, p_budget, p_budget_period)
  returning key_id
$$;

-- False where there is no such key, or where it was revoked before.
create or replace function tollbook.revoke_api_key(p_key_id bigint) returns boolean
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with ended as (
    update api_key set revoked_at = clock() where key_id = p_key_id and revoked_at is null returning 1)
  select exists (select from ended)
$$;

-- Records that these keys were used now. A key that an admission has locked at this moment is recorded by that.
create or replace function tollbook.record_key_uses(p_key_ids bigint[]) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  update api_key set last_used_at = clock() where key_id in (
    select key_id from api_key where key_id = any (p_key_ids)
      and revoked_at is null and (expires_at is null or expires_at > clock())
      and (last_used_at is null or abs(extract(epoch from clock() - last_used_at)) >= 60)
    order by key_id for update skip locked)
$$;

-- Disables the user of an account, or ends that. False where nothing changed. A closed account stays disabled.
create or replace function tollbook.set_account_disabled(p_account_id bigint, p_is_disabled boolean) returns boolean
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with changed as (
    update account set disabled_at = case when p_is_disabled then clock() end
    where account_id = p_account_id and (disabled_at is not null) <> p_is_disabled and closed_at is null returning 1)
  select exists (select from changed)
$$;

grant execute on function tollbook.set_account_disabled, tollbook.next_account_id, tollbook.open_user_account, tollbook.create_api_key, tollbook.revoke_api_key, tollbook.record_key_uses to tollbook_writer;
