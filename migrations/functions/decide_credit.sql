-- Decides a batch's commands about chats and credit, one after the other. A command that shares its stream with an earlier
-- one of the batch is left out: it is deferred, so nothing may change for it.
create or replace function tollbook.decide_credit(p_commands json, p_now timestamptz) returns json
language plpgsql volatile set search_path = tollbook, pg_temp as $$
declare
  c record;
  verdict json;
  verdicts json[] := '{}';
begin
  for c in
    select t.ord, t.admit, t.credit from (
      select named.*, min(named.ord) over (partition by named.stream) as first from rows from (
        json_to_recordset(p_commands) as (stream text, expect int, claims json, admit json, credit json)
      ) with ordinality as named(stream, expect, claims, admit, credit, ord)
    ) t
    where t.ord = t.first and (t.admit is not null or t.credit is not null) order by t.ord
  loop
    verdict := case when c.admit is not null then admit_chat(c.admit, p_now) else move_credit(c.credit, p_now) end;
    verdicts := verdicts || json_build_object('ord', c.ord, 'code', verdict->>'code',
      'is_recorded', coalesce((verdict->>'is_recorded')::boolean, true), 'detail', verdict);
  end loop;
  return array_to_json(verdicts);
end $$;
