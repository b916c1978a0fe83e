-- The newest head, where this anchor is due and has not received it; the process that takes it sends it. No row where there
-- is nothing to send. A due time more than p_every_ms ahead was written before the clock was set back.
create or replace function tollbook.take_anchor(p_origin text, p_name text, p_every_ms int)
returns table (size bigint, note text)
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with known as (
    insert into log_anchor (origin, name, size, due_at) values (p_origin, p_name, -1, clock())
    on conflict do nothing
  ), newest as materialized (
    select head.size, head.note from log_head head where origin = p_origin order by head.size desc limit 1
  ), due as (
    update log_anchor set due_at = clock() + p_every_ms * interval '1 millisecond'
    from newest
    where origin = p_origin and name = p_name and log_anchor.size < newest.size and not is_halted()
      and (due_at <= clock() or due_at > clock() + p_every_ms * interval '1 millisecond')
    returning 1
  )
  select newest.size, newest.note from newest where exists (select from due)
$$;

-- The anchor has received the head of this size. A size beyond the newest head would be sent no head any more.
create or replace function tollbook.record_anchor(p_origin text, p_name text, p_size bigint) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  insert into log_anchored_head (origin, size)
  select head.origin, head.size from log_head head where head.origin = p_origin and head.size = p_size
  on conflict do nothing;
  update log_anchor set size = greatest(size, p_size) where origin = p_origin and name = p_name
    and p_size <= (select max(head.size) from log_head head where head.origin = p_origin)
$$;

-- Makes an anchor due in p_ms, where it would be later: soon after a failure, or when the process ends.
create or replace function tollbook.schedule_anchor(p_origin text, p_name text, p_ms int) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  insert into log_anchor as anchor (origin, name, size, due_at)
  values (p_origin, p_name, -1, clock() + p_ms * interval '1 millisecond')
  on conflict (origin, name) do update set due_at = least(anchor.due_at, excluded.due_at)
$$;

grant execute on function tollbook.take_anchor, tollbook.record_anchor, tollbook.schedule_anchor to tollbook_writer;
