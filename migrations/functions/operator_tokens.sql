create or replace function tollbook.create_operator_token(p_name text, p_scopes text[], p_hash bytea, p_expires_at timestamptz,
  p_accounts text[])
returns bigint language sql volatile security definer set search_path = tollbook, pg_temp as $$
  insert into operator_token (name, scopes, accounts, hash, created_at, expires_at)
  values (p_name, p_scopes, p_accounts, p_hash, clock(), p_expires_at)
  returning token_id
$$;

-- False where there is no such token, or where it was revoked before.
create or replace function tollbook.revoke_operator_token(p_token_id bigint) returns boolean
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with revoked as (
    update operator_token set revoked_at = clock() where token_id = p_token_id and revoked_at is null returning 1)
  select exists (select from revoked)
$$;

grant execute on function tollbook.create_operator_token, tollbook.revoke_operator_token to tollbook_writer;
