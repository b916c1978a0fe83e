-- What `tollbook verify` compares with the events of bodies and results: hashes and lengths, for a role that may not read the contents.

-- Of the body of a call; no row where it is missing.
create or replace function tollbook.body_hash(p_body_id uuid) returns table (sha256 text, bytes bigint)
language sql stable security definer set search_path = tollbook, pg_temp as $$
  select '0x' || encode(pg_catalog.sha256(call_body.body), 'hex'), octet_length(call_body.body)
  from call_body where call_body.body_id = p_body_id
$$;

-- Of the result of an attempt, also of one whose bytes are in the result store; no row where it is not there, which it is not after its time.
create or replace function tollbook.result_hash(p_call_id bigint, p_attempt int) returns table (sha256 text, bytes bigint)
language sql stable security definer set search_path = tollbook, pg_temp as $$
  select '0x' || encode(coalesce(upload.sha256, pg_catalog.sha256(result.body)), 'hex'), coalesce(upload.bytes, octet_length(result.body))
  from call_result result
  left join result_upload upload on upload.call_id = result.call_id and upload.lease_id = result.lease_id and octet_length(result.body) = 0
  where result.call_id = p_call_id and result.attempt = p_attempt
$$;

grant execute on function tollbook.body_hash, tollbook.result_hash to tollbook_writer, tollbook_reader;
