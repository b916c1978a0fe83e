-- An event's leaf: the canonical JSON of its columns, its keys in order. What this returns for an event never changes: the tree
-- has its hash. Without settings of their own, these become a part of the statements that call them. The time is never infinite;
-- where somebody made it so, the leaf still is one, so that the verifiers name it.
create or replace function tollbook.leaf_text(p_event tollbook.event) returns text language sql stable as $$
  select '{"at":"' || coalesce(to_char(p_event.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'infinite') || '","data":' || p_event.data
    || ',"lane":' || p_event.lane_id || ',"schema":1,"seq":' || p_event.seq || ',"stream":"' || p_event.stream
    || '","type":"' || p_event.type || '","version":' || p_event.version || '}'
$$;

create or replace function tollbook.leaf(p_event tollbook.event) returns bytea language sql stable as $$
  select convert_to(tollbook.leaf_text(p_event), 'UTF8')
$$;

grant execute on function tollbook.leaf_text, tollbook.leaf to tollbook_writer;
