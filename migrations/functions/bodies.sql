create or replace function tollbook.put_body(p_body_id uuid, p_content_type text, p_body bytea) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  insert into call_body (body_id, content_type, body, created_at) values (p_body_id, p_content_type, p_body, clock())
$$;

-- The small bodies of a batch: sent in one message with it and written before its lock is requested.
create or replace function tollbook.put_bodies(p_bodies json) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  insert into call_body (body_id, content_type, body, created_at)
  select b.body_id, b.content_type, decode(b.base64, 'base64'), clock()
  from json_to_recordset(p_bodies) as b(body_id uuid, content_type text, base64 text)
  on conflict (body_id) do nothing
$$;

create or replace function tollbook.put_result(p_call_id bigint, p_attempt int, p_lease_id uuid, p_content_type text, p_body bytea)
returns void language sql volatile security definer set search_path = tollbook, pg_temp as $$
  insert into call_result (call_id, attempt, lease_id, content_type, body, created_at)
  values (p_call_id, p_attempt, p_lease_id, p_content_type, p_body, clock())
  on conflict (call_id, attempt) do update set
    lease_id = excluded.lease_id, content_type = excluded.content_type, body = excluded.body
$$;

grant execute on function tollbook.put_body, tollbook.put_bodies, tollbook.put_result to tollbook_writer;
