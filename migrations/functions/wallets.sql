-- The user of a wallet: a new one of the given id where the wallet has no user. Concurrent calls return the same user. p_chain_id
-- is that of a contract, and 0 for a key.
create or replace function identity.user_of_wallet(p_address text, p_chain_id bigint, p_user_id uuid, p_name text, p_email text) returns uuid
language plpgsql volatile set search_path = identity, pg_temp as $$
declare
  owner uuid;
begin
  select user_id into owner from wallet where address = p_address and chain_id = p_chain_id;
  if found then return owner; end if;
  insert into wallet (address, chain_id, user_id, created_at) values (p_address, p_chain_id, p_user_id, tollbook.clock())
    on conflict do nothing;
  if found then
    insert into "user" (id, name, email, created_at, updated_at)
      values (p_user_id, p_name, p_email, tollbook.clock(), tollbook.clock());
  end if;
  -- a new statement: it sees the row of the call that came first
  select user_id into strict owner from wallet where address = p_address and chain_id = p_chain_id;
  return owner;
end $$;

grant execute on function identity.user_of_wallet to tollbook_writer;

-- Adds a wallet to a user who exists; returns whose it is then, which is another user where it had one. Null without the user.
create or replace function identity.link_wallet(p_address text, p_chain_id bigint, p_user_id uuid) returns uuid
language plpgsql volatile set search_path = identity, pg_temp as $$
declare
  owner uuid;
begin
  perform 1 from "user" where id = p_user_id for update;
  if not found then return null; end if;
  insert into wallet (address, chain_id, user_id, created_at) values (p_address, p_chain_id, p_user_id, tollbook.clock())
    on conflict do nothing;
  select user_id into strict owner from wallet where address = p_address and chain_id = p_chain_id;
  return owner;
end $$;

grant execute on function identity.link_wallet to tollbook_writer;

-- Removes a wallet of a user, unless nothing would be left to sign in with: another wallet, or a credential of one of these providers.
-- Of several simultaneous removals that would leave nothing, the last one is refused.
create or replace function identity.unlink_wallet(p_address text, p_user_id uuid, p_providers text[]) returns text
language plpgsql volatile set search_path = identity, pg_temp as $$
begin
  perform 1 from "user" where id = p_user_id for update;
  if not exists (select 1 from wallet where address = p_address and user_id = p_user_id) then return 'unknown'; end if;
  if not exists (select 1 from wallet where address <> p_address and user_id = p_user_id)
    and not exists (select 1 from credential where user_id = p_user_id and provider_id = any (p_providers))
  then return 'last'; end if;
  delete from wallet where address = p_address and user_id = p_user_id;
  return 'removed';
end $$;

grant execute on function identity.unlink_wallet to tollbook_writer;
