-- Deletes the data outside the ledger about a user whose account is closed: the user with credentials, wallets and sessions,
-- what links in mails are recognised by, the names of the account's keys, an operator's request ids, and the rate limits whose
-- subjects begin with one of p_subjects. False, with nothing changed, while there is a session: its end is recorded first.
create or replace function tollbook.erase_user(p_user_id uuid, p_account_id bigint, p_subjects text[]) returns boolean
language plpgsql volatile security definer set search_path = tollbook, pg_temp as $$
declare
  address text;
begin
  if not exists (select from account where account_id = p_account_id and name = 'user:' || p_user_id and closed_at is not null) then
    raise exception 'the account % of user % is not closed', p_account_id, p_user_id using errcode = 'object_not_in_prerequisite_state';
  end if;
  -- a session that begins meanwhile waits for this row, and finds no user then
  select email into address from identity."user" where id = p_user_id for update;
  if exists (select from identity.session where user_id = p_user_id) then return false; end if;
  delete from identity.verification where position(p_user_id::text in value) > 0 or position(address in value) > 0;
  delete from identity."user" where id = p_user_id;
  update api_key set name = 'erased', revoked_at = coalesce(revoked_at, clock()) where account_id = p_account_id;
  delete from account_webhook where account_id = p_account_id;
  delete from task where kind = 'budget_message' and (payload->>'account_id')::bigint = p_account_id;
  delete from credit_request where account_id = p_account_id and position(':' in request_id) = 0;
  delete from rate_window where exists (select from unnest(p_subjects) as beginning where starts_with(subject, beginning));
  return true;
end $$;

-- Deletes up to p_max results of ended calls that these wallets have paid for; returns how many.
create or replace function tollbook.erase_results(p_payers text[], p_max int) returns int
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with gone as (
    delete from call_result where (call_id, attempt) in (
      select call_result.call_id, call_result.attempt
      from payment join projection using (generation) join call_result on call_result.call_id = payment.call_id
      where is_active and payer = any (select hex_bytes(one) from unnest(p_payers) one)
        and not exists (select from call where call.call_id = call_result.call_id) limit p_max)
    returning call_id, attempt
  ), noted as (
    insert into deleted_result select call_id, attempt, clock() from gone
    on conflict (call_id, attempt) do update set deleted_at = excluded.deleted_at
  )
  select count(*)::int from gone
$$;

grant execute on function tollbook.erase_user, tollbook.erase_results to tollbook_writer;
