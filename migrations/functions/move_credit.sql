-- Ends a chat's hold. 'gone' where another process has ended it, or where it had to be unstarted and is started; where a
-- process ends the hold of another, also where that other sends heartbeats again. If the hold was captured in full
-- meanwhile and the command brings a correction, the excess is returned: only then is 'gone' recorded.
create or replace function tollbook.settle_chat(p_move json, p_now timestamptz) returns json
language plpgsql volatile set search_path = tollbook, pg_temp as $$
declare
  move record;
  ended record;
begin
  select * into move from json_to_record(p_move) as m(chat_id uuid, captured bigint, released bigint, unstarted boolean,
    recovered_by uuid, silent_secs float8, corrects boolean);
  delete from chat_hold where chat_id = move.chat_id and amount = move.captured + move.released
    and (move.unstarted is not true or started_at is null)
    and (move.recovered_by is null or is_process_silent(process_id, move.recovered_by, move.silent_secs))
    returning account_id, key_id, amount, budget_from into ended;
  if found then
    update account set held = held - ended.amount, balance = balance + move.released, used = used + move.captured
      where account_id = ended.account_id;
    -- A hold of an earlier period changes nothing in this one. At least 0: a clock that was more than a day ahead may have made this
    -- period begin anew since the hold.
    update api_key set spent = spent - move.released,
      budget_spent = greatest(budget_spent - case when budget_from = ended.budget_from then move.released else 0 end, 0),
      budget_used = budget_used + case when budget_from = ended.budget_from then move.captured else 0 end
      where key_id = ended.key_id and (move.released > 0 or budget_from = ended.budget_from);
    if ended.budget_from is not null and move.captured > 0 then perform tell_budgets(array[ended.key_id], false, p_now); end if;
    if move.recovered_by is not null and move.captured > 0 then
      insert into recovered_chat (chat_id, account_id, key_id, amount, budget_from, recovered_at)
        values (move.chat_id, ended.account_id, ended.key_id, move.captured, ended.budget_from, p_now);
    end if;
    return json_build_object('code', 'ok');
  end if;
  if move.corrects then
    delete from recovered_chat where chat_id = move.chat_id and amount = move.captured + move.released
      returning account_id, key_id, budget_from into ended;
    if found then
      update account set used = used - move.released, balance = balance + move.released
        where account_id = ended.account_id;
      update api_key set spent = spent - move.released,
        budget_spent = greatest(budget_spent - case when budget_from = ended.budget_from then move.released else 0 end, 0),
        budget_used = greatest(budget_used - case when budget_from = ended.budget_from then move.released else 0 end, 0)
        where key_id = ended.key_id;
      return json_build_object('code', 'gone', 'is_recorded', true);
    end if;
  end if;
  return json_build_object('code', 'gone', 'is_recorded', false);
end $$;

-- Moves credit as its command's events say. Called as admit_chat is. 'gone' where the opening of an account of that name is on record already,
-- and else where one has too little, is not on record, or would have too much, or is closed; one is closed without credit only. A request id that was used before moves nothing: 'repeated' where it was for the
-- same move, with the balance after it, else 'request_id_taken'.
create or replace function tollbook.move_credit(p_move json, p_now timestamptz) returns json
language plpgsql volatile set search_path = tollbook, pg_temp as $$
declare
  move record;
  earlier credit_request;
  new_balance bigint;
begin
  if p_move->>'op' = 'settle' then return settle_chat(p_move, p_now); end if;
  select * into move from json_to_record(p_move) as m(op text, account_id bigint, name text, amount bigint, request_id text);
  if move.op = 'open' then
    insert into account as known (account_id, name, created_at, recorded_at) overriding system value
      values (move.account_id, move.name, p_now, p_now)
      on conflict (name) do update set recorded_at = excluded.recorded_at
        where known.recorded_at is null and known.account_id = excluded.account_id;
    return json_build_object('code', case when found then 'ok' else 'gone' end);
  end if;
  if move.op = 'close' then
    update account set closed_at = p_now, disabled_at = coalesce(disabled_at, p_now)
      where account_id = move.account_id and closed_at is null and balance = 0 and held = 0
        -- a completion whose cost may still be corrected, which returns credit
        and not exists (select from recovered_chat where recovered_chat.account_id = move.account_id);
    return json_build_object('code', case when found then 'ok' else 'gone' end);
  end if;
  select * into earlier from credit_request where request_id = move.request_id;
  if found then
    return case when (earlier.op, earlier.account_id, earlier.amount) = (move.op, move.account_id, move.amount)
      then json_build_object('code', 'repeated', 'available', earlier.balance)
      else json_build_object('code', 'request_id_taken') end;
  end if;
  -- a grant or a top-up adds, up to 2^53 - 1, which JSON can represent; an expiry subtracts what is not held
  update account set balance = balance + case move.op when 'expire' then -move.amount else move.amount end
    where account_id = move.account_id and case move.op
      when 'expire' then balance >= move.amount
      else closed_at is null and recorded_at is not null and account.balance + account.held + account.used + move.amount <= 9007199254740991 end
    returning balance into new_balance;
  if not found then return json_build_object('code', 'gone'); end if;
  if move.request_id is not null then
    insert into credit_request values (move.request_id, move.op, move.account_id, move.amount, new_balance, p_now);
  end if;
  return json_build_object('code', 'ok', 'available', new_balance);
end $$;
