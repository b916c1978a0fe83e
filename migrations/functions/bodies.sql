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

-- Stores the result of a lease. The first one is kept: another one of the same lease changes nothing, and gets the hash and the length of
-- the one that is kept, so that its completion records that. A lease that replaced another one within its attempt replaces its result as well.
create or replace function tollbook.put_result(p_call_id bigint, p_attempt int, p_lease_id uuid, p_content_type text, p_body bytea,
  p_head text default null)
returns table (sha256 text, bytes bigint)
language plpgsql volatile security definer set search_path = tollbook, pg_temp as $$
#variable_conflict use_column
begin
  insert into call_result as kept (call_id, attempt, lease_id, content_type, body, head, created_at)
  values (p_call_id, p_attempt, p_lease_id, p_content_type, p_body, p_head, clock())
  on conflict (call_id, attempt) do update set
    lease_id = excluded.lease_id, content_type = excluded.content_type, body = excluded.body, head = excluded.head
  where kept.lease_id <> excluded.lease_id
    and exists (select from call where call.call_id = excluded.call_id and call.lease_id = excluded.lease_id);
  -- a statement of its own sees what another transaction has stored while the insert waited for it
  if not found then
    return query select hash.sha256, hash.bytes from call_result kept cross join lateral result_hash(p_call_id, p_attempt) hash
    where kept.call_id = p_call_id and kept.attempt = p_attempt and kept.lease_id = p_lease_id;
  end if;
end $$;

-- Several small ones: one commit for all. Rows of those whose lease has another result, by their place from 1.
create or replace function tollbook.put_results(p_results json) returns table (place bigint, sha256 text, bytes bigint)
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  select r.place, kept.sha256, kept.bytes
  from (
    select * from rows from (
      json_to_recordset(p_results) as (call_id bigint, attempt int, lease_id uuid, content_type text, base64 text, head text)
    ) with ordinality as r(call_id, attempt, lease_id, content_type, base64, head, place)
    order by r.call_id, r.attempt, r.place offset 0
  ) r cross join lateral put_result(r.call_id, r.attempt, r.lease_id, r.content_type, decode(r.base64, 'base64'), r.head) kept
$$;

grant execute on function tollbook.put_body, tollbook.put_bodies, tollbook.put_result, tollbook.put_results to tollbook_writer;

-- A part with this number, from 0, is about to be sent to the result store.
create or replace function tollbook.note_result_part(p_call_id bigint, p_lease_id uuid, p_part int) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  insert into result_upload (call_id, lease_id, parts, created_at) values (p_call_id, p_lease_id, p_part + 1, clock())
  on conflict (call_id, lease_id) do update set parts = excluded.parts where result_upload.parts < excluded.parts
$$;

-- The same as put_result for a result whose bytes are in the result store.
create or replace function tollbook.put_stored_result(
  p_call_id bigint, p_attempt int, p_lease_id uuid, p_content_type text, p_bytes bigint, p_sha256 bytea, p_head text default null)
returns table (sha256 text, bytes bigint)
language plpgsql volatile security definer set search_path = tollbook, pg_temp as $$
#variable_conflict use_column
begin
  return query select * from put_result(p_call_id, p_attempt, p_lease_id, p_content_type, ''::bytea, p_head);
  if not found then
    update result_upload set bytes = p_bytes, sha256 = p_sha256
    where call_id = p_call_id and lease_id = p_lease_id and result_upload.sha256 is null;
  end if;
end $$;

-- Up to p_max uploads that no receipt leads to: of results whose life has ended, of leases that were lost, and of completions that never
-- came. Their parts are deleted first, then the rows.
create or replace function tollbook.unused_result_uploads(p_max int)
returns table (call_id bigint, lease_id uuid, parts int)
language sql stable security definer set search_path = tollbook, pg_temp as $$
  select upload.call_id, upload.lease_id, upload.parts from result_upload upload
  where (upload.created_at < clock() - interval '1 hour'
      -- erased with its payer
      or exists (select from deleted_result where deleted_result.call_id = upload.call_id))
    and not exists (select from call_result where call_result.call_id = upload.call_id and call_result.lease_id = upload.lease_id)
    and not exists (select from call where call.call_id = upload.call_id and call.lease_id = upload.lease_id)
  limit p_max
$$;

create or replace function tollbook.forget_result_upload(p_call_id bigint, p_lease_id uuid) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  delete from result_upload where call_id = p_call_id and lease_id = p_lease_id
$$;

grant execute on function tollbook.note_result_part, tollbook.put_stored_result, tollbook.unused_result_uploads,
  tollbook.forget_result_upload to tollbook_writer;
