-- The answers of these completions are about to be passed on. Returns those that are still held.
create or replace function tollbook.mark_holds_started(p_chats uuid[]) returns setof uuid
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  update chat_hold set started_at = coalesce(started_at, clock()) where chat_id = any (p_chats) returning chat_id
$$;

grant execute on function tollbook.mark_holds_started to tollbook_writer;
