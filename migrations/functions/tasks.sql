-- Begins the next round of a task, if it is due: no other process begins one for p_lease_ms. No row where it is not due. The clock is read
-- once the row is locked: of two processes that come together the later one finds the round of the first.
create or replace function tollbook.begin_round(p_kind text, p_queue text, p_key text, p_lease_ms int)
returns table (round int, payload json, ok_at timestamptz, begun_at timestamptz)
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with first as (
    insert into task (kind, queue, key, created_at, ok_at, payload, takes, taken_at, due_at)
    select p_kind, p_queue, p_key, now, now, '{}', 1, now, now + p_lease_ms * interval '1 millisecond' from clock() as now
    where not exists (select from task where kind = p_kind and queue = p_queue and key = p_key)
    on conflict do nothing
    returning takes, payload, ok_at, taken_at
  ), next as (
    update task set takes = takes + 1, taken_at = clock(), due_at = clock() + p_lease_ms * interval '1 millisecond'
    where kind = p_kind and queue = p_queue and key = p_key
      -- a round of the future is from before the clock went back
      and (due_at <= clock() or taken_at > clock())
    returning takes, payload, ok_at, taken_at
  )
  select * from first union all select * from next
$$;

-- Ends a round, or notes how far it has come: the next one may begin in p_due_ms. False where another process has begun the next one
-- meanwhile, and where the clock went back behind this one: then nothing changes. Rows of the same queue that were not taken for a month are
-- deleted: of configurations that are no longer in force.
create or replace function tollbook.end_round(p_kind text, p_queue text, p_key text, p_round int, p_due_ms int, p_payload json, p_error text)
returns boolean
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  delete from task where kind = p_kind and queue = p_queue and key <> p_key and taken_at < clock() - interval '30 days';
  with ended as (
    update task set due_at = clock() + p_due_ms * interval '1 millisecond', payload = p_payload, error = p_error,
      ok_at = case when p_error is null then clock() else ok_at end
    where kind = p_kind and queue = p_queue and key = p_key and takes = p_round and taken_at <= clock() returning 1)
  select exists (select from ended)
$$;

-- A process still works on its round: no other one begins the next for p_lease_ms. False where another one has.
create or replace function tollbook.renew_round(p_kind text, p_queue text, p_key text, p_round int, p_lease_ms int) returns boolean
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with renewed as (
    update task set due_at = clock() + p_lease_ms * interval '1 millisecond'
    where kind = p_kind and queue = p_queue and key = p_key and takes = p_round returning 1)
  select exists (select from renewed)
$$;

-- Takes up to p_max messages of a queue that are due, the least tried ones first: those of an address that never answers hold up no other.
-- They are due again after p_lease_ms; where it is null, after a time that grows with their tries. After three days they are given up.
create or replace function tollbook.take_messages(p_kind text, p_queue text, p_max int, p_lease_ms int)
returns table (task_id bigint, payload json, tries int, created_at timestamptz)
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  delete from task where kind = p_kind and queue = p_queue and created_at < clock() - interval '3 days';
  with due as materialized (
    select task.task_id from task
    where kind = p_kind and queue = p_queue
      -- a time of the future is from before the clock went back
      and (due_at <= clock() or coalesce(taken_at, task.created_at) > clock())
    order by takes, task.task_id limit p_max for update skip locked
  )
  update task set takes = takes + 1, taken_at = clock(),
    due_at = clock() + coalesce(p_lease_ms * interval '1 millisecond', back_off(takes + 1))
  from due where task.task_id = due.task_id
  returning task.task_id, task.payload, task.takes, task.created_at
$$;

-- How long after a try the next one comes.
create or replace function tollbook.back_off(p_tries int) returns interval language sql immutable as $$
  select least(interval '10 minutes', interval '1 second' * 2 ^ least(p_tries, 20))
$$;

-- The message was taken, or has no receiver. One that replaced it meanwhile has another number.
create or replace function tollbook.end_message(p_task_id bigint) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  delete from task where task_id = p_task_id
$$;

-- The message was not taken: it is due again.
create or replace function tollbook.return_message(p_task_id bigint) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  update task set due_at = clock() + back_off(takes) where task_id = p_task_id
$$;

grant execute on function tollbook.begin_round, tollbook.end_round, tollbook.renew_round, tollbook.take_messages, tollbook.end_message,
  tollbook.return_message to tollbook_writer;
