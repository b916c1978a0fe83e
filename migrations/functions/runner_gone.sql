-- Notes that a runner answered 410 to a call; a call that was noted before keeps its time. Returns how many calls of the runner were
-- noted after p_since and within the last p_within_secs.
create or replace function tollbook.note_runner_gone(p_runner text, p_call_id bigint, p_since timestamptz, p_within_secs int)
returns int language plpgsql volatile security definer set search_path = tollbook, pg_temp as $$
begin
  insert into runner_gone (runner, call_id, at) values (p_runner, p_call_id, clock()) on conflict do nothing;
  return (select count(*)::int from runner_gone
    where runner = p_runner and at > greatest(p_since, clock() - p_within_secs * interval '1 second'));
end $$;

grant execute on function tollbook.note_runner_gone to tollbook_writer;
