-- Bearer tokens of operators and auditors: only their hashes, with what they allow.
create table tollbook.operator_token (
  token_id bigint generated always as identity primary key,
  name text not null check (name ~ '^[A-Za-z0-9._-]{1,64}$'),
  scopes text[] not null,
  hash bytea not null unique,
  created_at timestamptz not null default tollbook.clock(),
  expires_at timestamptz,
  revoked_at timestamptz
);

create function tollbook.create_operator_token(p_name text, p_scopes text[], p_hash bytea, p_expires_at timestamptz)
returns bigint language sql volatile security definer set search_path = tollbook, pg_temp as $$
  insert into operator_token (name, scopes, hash, expires_at) values (p_name, p_scopes, p_hash, p_expires_at)
  returning token_id
$$;

-- False where there is no such token, or it was revoked before.
create function tollbook.revoke_operator_token(p_token_id bigint) returns boolean
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with revoked as (
    update operator_token set revoked_at = clock() where token_id = p_token_id and revoked_at is null returning 1)
  select exists (select from revoked)
$$;

grant select on tollbook.operator_token to tollbook_writer;
revoke execute on function tollbook.create_operator_token(text, text[], bytea, timestamptz),
  tollbook.revoke_operator_token(bigint) from public;
grant execute on function tollbook.create_operator_token(text, text[], bytea, timestamptz),
  tollbook.revoke_operator_token(bigint) to tollbook_writer;
