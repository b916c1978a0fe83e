-- The user of a wallet: a new one of the given id where the wallet has none. Concurrent calls return the same user. p_chain_id
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
