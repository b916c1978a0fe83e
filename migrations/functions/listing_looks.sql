-- Begins the next look at a discovery service, if it is due: no other gateway begins one for p_lease_ms. No row where it is not due.
create or replace function tollbook.begin_listing_look(p_url text, p_lease_ms int)
returns table (look bigint, state json)
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  insert into listing_look as known (url, look, begun_at, due_at, state)
  select p_url, 1, now, now + p_lease_ms * interval '1 millisecond', '{"listings":[]}' from clock() as now
  on conflict (url) do update
    set look = known.look + 1, begun_at = excluded.begun_at, due_at = excluded.due_at
    where known.due_at <= excluded.begun_at
  returning known.look, known.state
$$;

-- Ends a look. False where another gateway has begun the next one meanwhile: then nothing changes. Services at which no gateway has
-- looked for a month are deleted.
create or replace function tollbook.end_listing_look(p_url text, p_look bigint, p_due_ms int, p_state json) returns boolean
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  delete from listing_look where begun_at < clock() - interval '30 days';
  with ended as (
    update listing_look set due_at = clock() + p_due_ms * interval '1 millisecond', state = p_state
    where url = p_url and look = p_look returning 1)
  select exists (select from ended)
$$;

grant execute on function tollbook.begin_listing_look, tollbook.end_listing_look to tollbook_writer;
